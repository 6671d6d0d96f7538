package postgres

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/backend"
)

const (
	// admin is the servers' superuser, and the database that he connects to.
	admin = "postgres"
	// clientUser owns the database of the recipes' tables.
	clientUser = "lockbench"
	database   = "lockbench"
)

// connect opens one connection. Statements are sent as text, which PgBouncer's
// console takes too.
func connect(ctx context.Context, n *backend.Node, user, db string) (*pgx.Conn, error) {
	host, text, err := net.SplitHostPort(n.Address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	cfg, err := pgx.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, err
	}
	cfg.Host, cfg.Port, cfg.Fallbacks = host, uint16(port), nil
	cfg.User, cfg.Database, cfg.ConnectTimeout = user, db, backend.AskLimit
	cfg.Password, cfg.TLSConfig = n.Access.Account.Password, impls.Config{TLS: n.Access.TLS}.TLSFor(n.Address)
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	return pgx.ConnectConfig(ctx, cfg)
}

// within calls f with an administrator's connection to the node.
func within(ctx context.Context, n *backend.Node, f func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, backend.AskLimit)
	defer cancel()
	user, db := admin, admin
	if a := n.Access.Account; a.User != "" {
		user, db = a.User, a.Database
	}
	conn, err := connect(ctx, n, user, db)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return f(ctx, conn)
}

// do executes statements one after another, as an administrator.
func do(ctx context.Context, n *backend.Node, statements ...string) error {
	return within(ctx, n, func(ctx context.Context, conn *pgx.Conn) error {
		for _, statement := range statements {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}

// askOne asks for one value.
func askOne[T any](ctx context.Context, n *backend.Node, query string) (value T, err error) {
	err = within(ctx, n, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, query).Scan(&value)
	})
	return value, err
}

// askPairs asks for rows of a name and a value.
func askPairs[T any](ctx context.Context, n *backend.Node, query string) (map[string]T, error) {
	all := map[string]T{}
	err := within(ctx, n, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, query)
		if err != nil {
			return err
		}
		var name string
		var value T
		_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
			all[name] = value
			return nil
		})
		return err
	})
	return all, err
}

// quote is s as a literal.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
