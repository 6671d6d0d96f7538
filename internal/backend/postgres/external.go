package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// Remove drops the tables, unless another run has claimed the schema.
func (Backend) Remove(ctx context.Context, c *backend.Cluster, run string, _ []string) error {
	n := c.Nodes()[0]
	runs, err := tables(ctx, n)
	if owner, claimed := runs[claim]; err != nil || len(runs) == 0 || claimed && owner != run {
		return err
	}
	return do(ctx, n, "DROP TABLE "+strings.Join(slices.Sorted(maps.Keys(runs)), ", "))
}

// tables lists lockbench's tables where it creates them. That of the claim has the
// run as the default of its column, without quotes and type here.
func tables(ctx context.Context, n *backend.Node) (runs map[string]string, err error) {
	return askPairs[string](ctx, n, `SELECT t.tablename, coalesce(split_part(c.column_default, '''', 2), '')
		FROM pg_tables t LEFT JOIN information_schema.columns c
			ON c.table_schema = t.schemaname AND c.table_name = t.tablename AND c.column_name = 'run'
		WHERE t.schemaname = current_schema() AND t.tablename LIKE 'lockbench\_%'`)
}
