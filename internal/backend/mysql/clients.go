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
	var ended []int64
	for _, id := range ids {
		err := do(ctx, n, "KILL CONNECTION "+strconv.FormatInt(id, 10))
		n.Asked("com_kill", 1)
		if refused, is := errors.AsType[*mysqldriver.MySQLError](err); is && refused.Number == noSuchThread {
			continue // it has left by itself
		}
		if err != nil {
			return len(ended), err
		}
		ended = append(ended, id)
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
