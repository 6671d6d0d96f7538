package cluster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// mysqlNoThread is the server's error for a connection that is not there.
const mysqlNoThread = 1094

// closeClients ends the connections that use the recipes' database: that is
// what tells them from those of replicas and our own, which use none.
func (mysql) closeClients(ctx context.Context, c *Cluster, n *Node) (closed int, err error) {
	ids, err := mysqlClients(ctx, n)
	if err != nil {
		return 0, err
	}
	var ended []int64
	for _, id := range ids {
		err := mysqlDo(ctx, n, "KILL CONNECTION "+strconv.FormatInt(id, 10))
		n.asked.add("com_kill", 1)
		if refused, is := errors.AsType[*mysqldriver.MySQLError](err); is && refused.Number == mysqlNoThread {
			continue // it has left by itself
		}
		if err != nil {
			return len(ended), err
		}
		ended = append(ended, id)
	}
	// The server marks a connection, and ends it as soon as it can.
	ctx, cancel := c.untilStop(ctx)
	defer cancel()
	err = c.awaitAll(ctx, func() error {
		left, err := mysqlClients(ctx, n)
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

// mysqlClients lists the connections of clients.
func mysqlClients(ctx context.Context, n *Node) (ids []int64, err error) {
	err = mysqlQuery(ctx, n, "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = '"+mysqlDatabase+"' AND ID <> CONNECTION_ID()",
		func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		})
	n.asked.add("com_select", 1)
	return ids, err
}
