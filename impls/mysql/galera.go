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

// galera is the topology of servers that are all written to. They agree on the
// order of commits, and of two transactions that have changed the same row at two
// servers the later is rolled back: what is a row is as safe as on one server.
// Locks of connections, on names and on rows, each server grants by itself.
const galera = "galera"

// rowsAnywhere lists the topologies of recipes whose lock is a row that they
// change.
func rowsAnywhere() []string { return append(anywhere(), galera) }

// askGroup finds a row if the server takes part in the group of most servers.
const askGroup = "SELECT 1 FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'WSREP_READY' AND VARIABLE_VALUE = 'ON'"

// groupParams are the session's settings at such a server. Before each statement
// it waits until it has applied what the group had ordered by then: else a client
// that comes from another server would not find its own lock, and call it lost.
// And it does not repeat what another's commit has undone: we do, by what is then
// in the row.
func groupParams() map[string]string {
	return map[string]string{"wsrep_sync_wait": "7", "wsrep_retry_autocommit": "0"}
}

// several reports whether clients choose among the servers of a topology.
func several(cfg impls.Config) bool { return cfg.Topology == replicated || cfg.Topology == galera }

// outsideGroup is the server's answer to every statement while it is not of the
// group, or not yet: nothing was done.
const outsideGroup = 1047

// buryThere is bury for a connection to another server, which may yet carry out
// what was sent to it: it is asked itself, as long as that takes. That it does not
// answer proves nothing: it may stand still, and go on.
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

// buryAt is bury on a connection of its own; there is false if it is to another
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
	// It may be outside the group, and waits for nobody then.
	if _, err := conn.ExecContext(ctx, "SET wsrep_sync_wait = 0"); err != nil {
		return false, err
	}
	who, err := identify(ctx, conn)
	if err != nil || who.server != dead.server {
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

// killed kills the connection of dead, by statements that ask and tell send to its
// server, until that has it no more.
func (c *client) killed(ctx context.Context, dead *session, ask func(query string, args ...any) (int64, error), tell func(kill string) error) error {
	for {
		left, err := ask("SELECT COUNT(*) FROM information_schema.processlist WHERE id = ? AND host = ?", dead.id, dead.host)
		if err != nil {
			return fmt.Errorf("look for connection %d: %w", dead.id, err)
		}
		if left == 0 {
			return nil
		}
		if err := tell("KILL " + strconv.FormatUint(dead.id, 10)); err != nil && !isNumber(err, noSuchThread) {
			return fmt.Errorf("kill connection %d: %w", dead.id, err)
		}
		if err := c.cfg.Clock.Sleep(ctx, buryWait); err != nil {
			return err
		}
	}
}

// buryWait is how long to wait for a killed connection before looking again.
const buryWait = 2 * time.Millisecond
