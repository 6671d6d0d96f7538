package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// galera is the topology of servers that all take writes. They agree on the
// order of commits, and of two transactions that changed the same row on two
// servers the later is rolled back: a lock that is a row is as safe as on one
// server. Each server grants the locks of connections, on names and rows, by
// itself.
const galera = "galera"

// rowsAnywhere lists the topologies of recipes whose lock is a row that they
// change.
func rowsAnywhere() []string { return append(anywhere(), galera) }

// askGroup returns a row if the server belongs to the majority of the group.
const askGroup = "SELECT 1 FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'WSREP_READY' AND VARIABLE_VALUE = 'ON'"

// groupParams are the session's settings on such a server. Before each
// statement it waits until it has applied all earlier commits of the group:
// otherwise a client that comes from another server would not find its own
// lock. It does not retry a statement that another commit has rolled back: the
// recipe retries, by the new state of the row.
func groupParams() map[string]string {
	return map[string]string{"wsrep_sync_wait": "7", "wsrep_retry_autocommit": "0"}
}

// several reports whether clients choose among several servers.
func several(cfg impls.Config) bool { return cfg.Topology == replicated || cfg.Topology == galera }

// outsideGroup is the server's error for every statement while it is outside
// the group: nothing was executed.
const outsideGroup = 1047

// buryThere is bury for a connection to another server, which may yet execute
// what was sent to it: it asks that server, for as long as necessary. A missing
// answer proves nothing: the server may be stopped, and continue.
func (c *client) buryThere(ctx context.Context, dead *session) error {
	var errs []error
	for i, server := range c.to.servers {
		there, err := c.buryAt(ctx, sql.OpenDB(server), dead)
		if there {
			return err
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.to.addresses[i], err))
		}
	}
	return fmt.Errorf("find the server that has connection %d: %w", dead.id, errors.Join(errs...))
}

// buryAt is bury on a new connection; there is false if that leads to another
// server, or to none.
func (c *client) buryAt(ctx context.Context, db *sql.DB, dead *session) (there bool, err error) {
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, c.to.timeout)
	defer cancel()
	conn, err := db.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer giveUp(conn)
	// The server may be outside the group, and must not wait for it.
	if _, err := conn.ExecContext(ctx, "SET wsrep_sync_wait = 0"); err != nil {
		return false, err
	}
	own, err := identify(ctx, conn)
	if err != nil || own.server != dead.server {
		return false, err
	}
	return true, c.killed(ctx, dead,
		func(query string, args ...any) (left int64, err error) {
			err = conn.QueryRowContext(ctx, query, args...).Scan(&left)
			return left, err
		},
		func(kill string) error {
			_, err := conn.ExecContext(ctx, kill)
			return err
		})
}

// killed kills the connection of dead with statements that query and exec send
// to its server, until the server has ended it.
func (c *client) killed(ctx context.Context, dead *session, query func(query string, args ...any) (int64, error), exec func(kill string) error) error {
	for {
		left, err := query("SELECT COUNT(*) FROM information_schema.processlist WHERE id = ? AND host = ?", dead.id, dead.host)
		if err != nil {
			return fmt.Errorf("look for connection %d: %w", dead.id, err)
		}
		if left == 0 {
			return nil
		}
		if err := exec("KILL " + strconv.FormatUint(dead.id, 10)); err != nil && !isNumber(err, noSuchThread) {
			return fmt.Errorf("kill connection %d: %w", dead.id, err)
		}
		if err := c.cfg.Clock.Sleep(ctx, buryWait); err != nil {
			return err
		}
	}
}

// buryWait is the pause before looking again for a killed connection.
const buryWait = 2 * time.Millisecond
