package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/backend"
)

// claim is the table that marks the run that uses a database.
const claim = "lockbench_run"

func (Backend) External() []string { return []string{"single"} }

// Identify: the id that a cluster of databases gets when it is made.
func (Backend) Identify(ctx context.Context, n *backend.Node) (id backend.Identity, err error) {
	if n.Access.Account.Database == "" {
		return id, errors.New("no database: write database: NAME in the configuration; lockbench creates its tables there")
	}
	id.Product = "PostgreSQL"
	if id.Version, err = askOne[string](ctx, n, "SHOW server_version"); err != nil {
		return id, err
	}
	if system, err := askOne[int64](ctx, n, "SELECT system_identifier FROM pg_control_system()"); err == nil {
		id.ID = fmt.Sprintf("system identifier %d", system)
	}
	if replica, err := askOne[bool](ctx, n, "SELECT pg_is_in_recovery()"); err == nil && replica {
		id.ReadOnly = "it is a replica"
	}
	return id, nil
}

// Claim creates a table that marks the database as in use.
func (Backend) Claim(ctx context.Context, c *backend.Cluster, run string) error {
	n := c.Nodes()[0]
	runs, err := tables(ctx, n)
	if err != nil {
		return err
	}
	if len(runs) > 0 {
		return fmt.Errorf("its database %s has tables of another run (%s): wait for the end of that run, or drop them if it was killed on another machine", n.Access.Account.Database, strings.Join(slices.Sorted(maps.Keys(runs)), ", "))
	}
	return do(ctx, n, "CREATE TABLE "+claim+" (run text DEFAULT "+quote(run)+")")
}

// Remove drops the tables if the run has claimed the schema: without its claim they
// are not its own.
func (Backend) Remove(ctx context.Context, c *backend.Cluster, run string, _ []string) error {
	n := c.Nodes()[0]
	runs, err := tables(ctx, n)
	if err != nil || runs[claim] != run {
		return err
	}
	return do(ctx, n, "DROP TABLE "+strings.Join(slices.Sorted(maps.Keys(runs)), ", "))
}

// Sessions reads pg_stat_activity, which shows the sessions of other roles to those
// that may read all.
func (Backend) Sessions(ctx context.Context, n *backend.Node) (sessions []backend.Session, err error) {
	if all, err := askOne[bool](ctx, n, "SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')"); err != nil {
		return nil, err
	} else if !all {
		return nil, errors.New("the list of its clients needs a role: GRANT pg_read_all_stats TO the account")
	}
	err = within(ctx, n, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT pid::text, coalesce(usename, '') || '@' || coalesce(host(client_addr), 'local'), `+ownSession+`
			FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`)
		if err != nil {
			return err
		}
		sessions, err = pgx.CollectRows(rows, pgx.RowToStructByPos[backend.Session])
		return err
	})
	return sessions, err
}

// ownSession is true of those with the user and the host of the connection that
// asks.
const ownSession = "usename = current_user AND client_addr IS NOT DISTINCT FROM inet_client_addr()"

func (Backend) CloseSessions(ctx context.Context, n *backend.Node, ids []string) (closed int, err error) {
	for _, id := range ids {
		// Another session may have the process id by now.
		ended, err := askPairs[bool](ctx, n, "SELECT pid::text, pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = "+id+" AND "+ownSession)
		if err != nil {
			return closed, err
		}
		closed += len(ended)
	}
	return closed, nil
}

func (Backend) Marked(ctx context.Context, n *backend.Node) (bool, error) {
	return askOne[bool](ctx, n, "SELECT to_regclass("+quote(backend.Marker)+") IS NOT NULL")
}

// tables lists lockbench's tables where it creates them. That of the claim has the
// run as the default of its column, without quotes and type here.
func tables(ctx context.Context, n *backend.Node) (runs map[string]string, err error) {
	return askPairs[string](ctx, n, `SELECT t.tablename, coalesce(split_part(c.column_default, '''', 2), '')
		FROM pg_tables t LEFT JOIN information_schema.columns c
			ON c.table_schema = t.schemaname AND c.table_name = t.tablename AND c.column_name = 'run'
		WHERE t.schemaname = current_schema() AND t.tablename LIKE 'lockbench\_%'`)
}
