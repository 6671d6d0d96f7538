package cluster

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log"
	"strings"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// mysqlDo executes statements one after another, as an administrator.
func mysqlDo(ctx context.Context, n *Node, statements ...string) error {
	db, err := mysqlOpen(n)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// mysqlRows asks for rows of a name and a value.
func mysqlRows(ctx context.Context, n *Node, query string) (map[string]string, error) {
	all := map[string]string{}
	err := mysqlQuery(ctx, n, query, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		all[name] = value
		return err
	})
	return all, err
}

// mysqlRow asks for one row, by the names of its columns; nil if there is none.
// What MySQL calls sources and replicas has MariaDB's names here.
func mysqlRow(ctx context.Context, n *Node, query string) (row map[string]string, err error) {
	rename := strings.NewReplacer("Replica_", "Slave_", "Source_", "Master_")
	err = mysqlQuery(ctx, n, query, func(rows *sql.Rows) error {
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
			row[rename.Replace(name)] = values[i].String
		}
		return err
	})
	return row, err
}

func mysqlQuery(ctx context.Context, n *Node, query string, take func(*sql.Rows) error) error {
	db, err := mysqlOpen(n)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, askLimit)
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

// mysqlOpen opens connections for one question.
func mysqlOpen(n *Node) (*sql.DB, error) {
	cfg := mysqldriver.NewConfig()
	cfg.User, cfg.Net, cfg.Addr = "root", "tcp", n.Address
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = askLimit, askLimit, askLimit
	// What goes wrong comes back as an error; a server that is starting
	// refuses many times.
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
