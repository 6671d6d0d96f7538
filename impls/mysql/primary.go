package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// replicated is the topology of a primary and its replicas, one of which may
// replace the primary.
const replicated = "replicated"

// anywhere lists the topologies of recipes that need one server, which may be
// the primary of several. Replication of rows is asynchronous, and locks of
// connections are not replicated.
func anywhere() []string { return []string{"single", replicated} }

// servers connects to the server that takes writes, or to any server of a
// group. No server announces that: the client asks each server that it connects
// to. It is safe for concurrent use.
type servers struct {
	addresses []string
	servers   []driver.Connector // in their order
	timeout   time.Duration      // of one connect
	ask       string             // returns a row on a usable server
	none      error              // the error if it returned none
	last      atomic.Int64       // index of the last usable server
}

// newServers are the servers of cfg; the caller adds the connectors. Clients of
// a group start with one server each, in turn.
func newServers(cfg impls.Config) *servers {
	to := &servers{addresses: cfg.Addresses, timeout: cfg.Timeout / time.Duration(len(cfg.Addresses)), ask: askPrimary, none: errReadOnly}
	if cfg.Topology == galera {
		to.ask, to.none = askGroup, errOutside
		to.last.Store(int64(cfg.Number % len(cfg.Addresses)))
	}
	return to
}

// Driver implements driver.Connector.
func (p *servers) Driver() driver.Driver { return p.servers[0].Driver() }

// Connect tries the servers in turn, starting with the last usable one.
func (p *servers) Connect(ctx context.Context) (driver.Conn, error) {
	first := int(p.last.Load())
	var errs []error
	for i := range p.servers {
		n := (first + i) % len(p.servers)
		conn, err := p.try(ctx, p.servers[n])
		if err == nil {
			p.last.Store(int64(n))
			return conn, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", p.addresses[n], err))
	}
	return nil, fmt.Errorf("no server takes writes: %w", errors.Join(errs...))
}

func (p *servers) try(ctx context.Context, server driver.Connector) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	conn, err := server.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.serves(ctx, conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

var (
	// errReadOnly: a server takes no writes, or none any more.
	errReadOnly = errors.New("the server takes no writes")
	// errOutside: a server is not in the group, or not yet again.
	errOutside = errors.New("the server is outside the majority of the group")
)

// askPrimary returns a row if the server takes writes.
const askPrimary = "SELECT 1 FROM DUAL WHERE NOT @@global.read_only"

// serves checks the server of conn.
func (p *servers) serves(ctx context.Context, conn driver.Conn) error {
	queryer, ok := conn.(driver.QueryerContext)
	if !ok {
		return fmt.Errorf("check that the server takes writes: a %T has no queries", conn)
	}
	rows, err := queryer.QueryContext(ctx, p.ask, nil)
	if err != nil {
		return fmt.Errorf("check that the server takes writes: %w", err)
	}
	defer rows.Close()
	err = rows.Next(make([]driver.Value, 1))
	if errors.Is(err, io.EOF) {
		return p.none
	}
	return err
}

// left reports whether err means that the server takes no writes any more,
// while another one may: then the connection is of no use.
func (c *client) left(err error) bool {
	switch c.cfg.Topology {
	case replicated:
		return isNumber(err, preventedByOption) || isNumber(err, readOnlyMode) || errors.Is(err, errReadOnly)
	case galera:
		return isNumber(err, outsideGroup) || errors.Is(err, errOutside)
	}
	return false
}

// writable is a further condition of a statement that locks rows, for a server
// that may be replaced: it matches no row once the server takes no writes,
// since that would still lock rows.
func writable(cfg impls.Config) string {
	if cfg.Topology == replicated {
		return " AND NOT @@global.read_only"
	}
	return ""
}
