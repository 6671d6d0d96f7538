package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/lockbench/lockbench/impls"
)

// connect opens a connection to the server that accepts writes, beginning with
// the one that did last, and returns its index. Its errors are ConnectErrors.
func (c *client) connect(ctx context.Context) (*pgx.Conn, int, error) {
	var errs []error
	for i := range c.cfg.Addresses {
		n := (c.last + i) % len(c.cfg.Addresses)
		conn, err := c.connectTo(ctx, c.cfg.Addresses[n])
		if err == nil {
			c.last = n
			return conn, n, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", c.cfg.Addresses[n], err))
	}
	return nil, 0, &impls.ConnectError{Err: errors.Join(errs...)}
}

func (c *client) connectTo(ctx context.Context, address string) (*pgx.Conn, error) {
	conf, err := config(c.cfg, address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout/max(1, c.servers()))
	defer cancel()
	return pgx.ConnectConfig(ctx, conf)
}

// config is that of a connection to one server. The statements need no
// preparation beforehand, which a pooled connection could not serve: each is
// parsed, bound and executed in one round trip.
func config(cfg impls.Config, address string) (*pgx.ConnConfig, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port of %s: %w", address, err)
	}
	conf, err := pgx.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, err
	}
	conf.Host, conf.Port, conf.Fallbacks = host, uint16(port), nil
	conf.User, conf.Password, conf.Database = cfg.Account.User, cfg.Account.Password, cfg.Account.Database
	conf.DialFunc = pgconn.DialFunc(cfg.Dial)
	conf.TLSConfig = cfg.TLSFor(address)
	conf.DefaultQueryExecMode = pgx.QueryExecModeExec
	conf.StatementCacheCapacity, conf.DescriptionCacheCapacity = 0, 0
	conf.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &canceller{conn: conn, limit: cfg.Timeout}
	}
	if cfg.Topology == replicated {
		conf.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return conf, nil
}
