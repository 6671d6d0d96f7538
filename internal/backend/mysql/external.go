package mysql

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

// Identify: MySQL has a uuid, MariaDB has none.
func (Backend) Identify(ctx context.Context, n *backend.Node) (id backend.Identity, err error) {
	all, err := askPairs(ctx, n, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'version_comment', 'server_uuid', 'server_id', 'hostname', 'port', 'read_only')")
	if err != nil {
		return id, err
	}
	id.Product, id.Version = productOf(all["version"]+all["version_comment"]), all["version"]
	id.ID = "server id " + all["server_id"] + " of " + all["hostname"] + " port " + all["port"]
	if uuid := all["server_uuid"]; uuid != "" {
		id.ID = "server uuid " + uuid
	}
	if all["read_only"] == "ON" {
		id.ReadOnly = "read_only=ON"
	}
	if n.Access.Account.Database == "" {
		return id, errors.New("no database: write database: NAME in the configuration; lockbench creates its tables there")
	}
	return id, nil
}

// Claim creates a table that marks the database as in use: its name is that of no
// run, so that two runs exclude one another.
func (Backend) Claim(ctx context.Context, c *backend.Cluster, run string) error {
	n := c.Nodes()[0]
	comments, err := tables(ctx, n)
	if err != nil {
		return err
	}
	if len(comments) > 0 {
		return fmt.Errorf("its database %s has tables of another run (%s): wait for the end of that run, or drop them if it was killed on another machine", n.Access.Account.Database, strings.Join(slices.Sorted(maps.Keys(comments)), ", "))
	}
	return do(ctx, n, "CREATE TABLE "+claim+" (run VARCHAR(80)) COMMENT '"+run+"'")
}

// Remove drops the tables if the run has claimed the database: without its claim
// they are not its own. The claim is the last to go.
func (Backend) Remove(ctx context.Context, c *backend.Cluster, run string, _ []string) error {
	n := c.Nodes()[0]
	comments, err := tables(ctx, n)
	if err != nil || comments[claim] != run {
		return err
	}
	delete(comments, claim)
	return do(ctx, n, "DROP TABLE "+strings.Join(append(slices.Sorted(maps.Keys(comments)), claim), ", "))
}

// tables lists lockbench's tables in the database, with their comments.
func tables(ctx context.Context, n *backend.Node) (comments map[string]string, err error) {
	return askPairs(ctx, n, `SELECT table_name, table_comment FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE 'lockbench\_%'`)
}
