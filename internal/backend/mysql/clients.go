package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/lockbench/lockbench/internal/backend"
)

// noSuchThread is the server's error for a connection that is not there.
const noSuchThread = 1094

// CloseClients ends the connections that use the recipes' database. The
// connections of replicas and our own use none.
func (Backend) CloseClients(ctx context.Context, c *backend.Cluster, n *backend.Node) (closed int, err error) {
	ids, err := clients(ctx, n)
	if err != nil {
		return 0, err
	}
	ended, err := kill(ctx, n, ids)
	if err != nil {
		return len(ended), err
	}
	// The server marks a connection, and ends it as soon as it can.
	err = c.AwaitAll(ctx, func() error {
		left, err := clients(ctx, n)
		if err != nil {
			return err
		}
		for _, id := range left {
			if slices.Contains(ended, id) {
				return fmt.Errorf("connection %d is not closed yet", id)
			}
		}
		return nil
	})
	return len(ended), err
}

// clients lists the connections of clients.
func clients(ctx context.Context, n *backend.Node) (ids []int64, err error) {
	err = queryRows(ctx, n, "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = '"+database+"' AND ID <> CONNECTION_ID()",
		func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		})
	n.Asked("com_select", 1)
	return ids, err
}

// kill ends connections, and returns those that were still there.
func kill(ctx context.Context, n *backend.Node, ids []int64) (ended []int64, err error) {
	for _, id := range ids {
		err := do(ctx, n, "KILL CONNECTION "+strconv.FormatInt(id, 10))
		n.Asked("com_kill", 1)
		if refused, is := errors.AsType[*mysqldriver.MySQLError](err); is && refused.Number == noSuchThread {
			continue // it has left by itself
		}
		if err != nil {
			return ended, err
		}
		ended = append(ended, id)
	}
	return ended, nil
}

// Sessions reads the list of processes. Without the privilege PROCESS it shows only
// the account's own.
func (Backend) Sessions(ctx context.Context, n *backend.Node) (sessions []backend.Session, err error) {
	privilege, err := askRow(ctx, n, `SELECT COUNT(*) AS granted FROM information_schema.USER_PRIVILEGES
		WHERE PRIVILEGE_TYPE = 'PROCESS' AND GRANTEE = CONCAT('\'', REPLACE(CURRENT_USER(), '@', '\'@\''), '\'')`)
	if err != nil {
		return nil, err
	}
	if privilege["granted"] == "0" {
		return nil, errors.New("the list of its clients needs a privilege: GRANT PROCESS ON *.* TO the account")
	}
	// Hosts have ports. Threads of the server have the commands Daemon and Binlog
	// Dump, or the user "system user".
	err = queryRows(ctx, n, `SELECT p.ID, CONCAT(p.USER, '@', SUBSTRING_INDEX(p.HOST, ':', 1)),
			p.USER = own.USER AND SUBSTRING_INDEX(p.HOST, ':', 1) = SUBSTRING_INDEX(own.HOST, ':', 1)
		FROM information_schema.PROCESSLIST p, information_schema.PROCESSLIST own
		WHERE own.ID = CONNECTION_ID() AND p.ID <> own.ID AND p.COMMAND <> 'Daemon' AND p.COMMAND NOT LIKE 'Binlog Dump%' AND p.USER NOT IN ('system user', 'event_scheduler')`,
		func(rows *sql.Rows) error {
			var s backend.Session
			err := rows.Scan(&s.ID, &s.From, &s.Own)
			sessions = append(sessions, s)
			return err
		})
	return sessions, err
}

func (Backend) CloseSessions(ctx context.Context, n *backend.Node, ids []string) (closed int, err error) {
	numbers := make([]int64, len(ids))
	for i, id := range ids {
		if numbers[i], err = strconv.ParseInt(id, 10, 64); err != nil {
			return 0, err
		}
	}
	ended, err := kill(ctx, n, numbers)
	return len(ended), err
}

func (Backend) Marked(ctx context.Context, n *backend.Node) (bool, error) {
	row, err := askRow(ctx, n, "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = '"+backend.Marker+"'")
	return row != nil, err
}
