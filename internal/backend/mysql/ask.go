package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/lockbench/lockbench/internal/backend"
)

// Errors after which the server asks for the statement once more: another transaction
// was in the way, and the statement has had no effect.
const (
	lockWaitTimeout = 1205
	deadlock        = 1213
	// tries is how often a statement is executed at the most.
	tries = 3
)

// do executes statements one after another, as an administrator.
func do(ctx context.Context, n *backend.Node, statements ...string) error {
	db, err := open(n)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, statement := range statements {
		_, err := db.ExecContext(ctx, statement)
		for try := 1; inTheWay(err) && try < tries; try++ {
			_, err = db.ExecContext(ctx, statement)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func inTheWay(err error) bool {
	refused, is := errors.AsType[*mysqldriver.MySQLError](err)
	return is && (refused.Number == lockWaitTimeout || refused.Number == deadlock)
}

// askPairs asks for rows of a name and a value.
func askPairs(ctx context.Context, n *backend.Node, query string) (map[string]string, error) {
	all := map[string]string{}
	err := queryRows(ctx, n, query, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		all[name] = value
		return err
	})
	return all, err
}

// askRow asks for one row, by the names of its columns; nil if there is none.
func askRow(ctx context.Context, n *backend.Node, query string) (row map[string]string, err error) {
	err = queryRows(ctx, n, query, func(rows *sql.Rows) error {
		names, err := rows.Columns()
		if err != nil {
			return err
		}
		values := make([]sql.NullString, len(names))
		into := make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		row = map[string]string{}
		err = rows.Scan(into...)
		for i, name := range names {
			row[name] = values[i].String
		}
		return err
	})
	return row, err
}

func queryRows(ctx context.Context, n *backend.Node, query string, take func(*sql.Rows) error) error {
	db, err := open(n)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, backend.AskLimit)
	defer cancel()
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := take(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// open opens connections for one question.
func open(n *backend.Node) (*sql.DB, error) {
	cfg := mysqldriver.NewConfig()
	cfg.User, cfg.Net, cfg.Addr = "root", "tcp", n.Address
	if a := n.Access.Account; a.User != "" {
		cfg.User, cfg.Passwd, cfg.DBName, cfg.TLS = a.User, a.Password, a.Database, n.Access.TLS
	}
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = backend.AskLimit, backend.AskLimit, backend.AskLimit
	// Failures are returned as errors; a server that is starting refuses many
	// connections.
	cfg.Logger = log.New(io.Discard, "", 0)
	connector, err := mysqldriver.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	db.SetConnMaxLifetime(time.Minute)
	return db, nil
}
