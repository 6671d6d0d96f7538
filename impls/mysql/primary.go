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

// replicated is the topology of a primary and its replicas, one of which may be
// made the primary in its place.
const replicated = "replicated"

// anywhere lists the topologies of recipes that need one server: it may be the
// primary of several. Rows reach the replicas later, and locks of connections
// never do.
func anywhere() []string { return []string{"single", replicated} }

// servers connects to one of several servers that serves now: to whichever takes
// writes, or to any of a group. Nobody tells a client which does: it asks each
// that it connects to. It is safe for concurrent use.
type servers struct {
	addresses []string
	servers   []driver.Connector // in their order
	timeout   time.Duration      // for one of them
	ask       string             // finds a row at one that serves
	none      error              // it found none
	last      atomic.Int64       // by index, who served when last asked
}

// newServers are those of cfg, whose connectors are to be added. Clients of a
// group begin with one server each, in turn.
func newServers(cfg impls.Config) *servers {
	to := &servers{addresses: cfg.Addresses, timeout: cfg.Timeout / time.Duration(len(cfg.Addresses)), ask: askPrimary, none: errReadOnly}
	if cfg.Topology == galera {
		to.ask, to.none = askGroup, errOutside
		to.last.Store(int64(cfg.Number % len(cfg.Addresses)))
	}
	return to
}

// Driver is for database/sql.
func (p *servers) Driver() driver.Driver { return p.servers[0].Driver() }

// Connect tries the servers in turn, beginning with the one that served last.
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
	// errOutside: a server is not of the group, or not yet again.
	errOutside = errors.New("the server is outside the group of most servers")
)

// askPrimary finds a row if the server takes writes.
const askPrimary = "SELECT 1 FROM DUAL WHERE NOT @@global.read_only"

// serves asks the server at the end of conn.
func (p *servers) serves(ctx context.Context, conn driver.Conn) error {
	asking, ok := conn.(driver.QueryerContext)
	if !ok {
		return fmt.Errorf("ask whether it takes writes: a %T cannot", conn)
	}
	rows, err := asking.QueryContext(ctx, p.ask, nil)
	if err != nil {
		return fmt.Errorf("ask whether it takes writes: %w", err)
	}
	defer rows.Close()
	err = rows.Next(make([]driver.Value, 1))
	if errors.Is(err, io.EOF) {
		return p.none
	}
	return err
}

// left reports whether err is the answer of a server that takes no writes any
// more, of several among which another may: then the connection is of no use.
func (c *client) left(err error) bool {
	switch c.cfg.Topology {
	case replicated:
		return isNumber(err, preventedByOption) || isNumber(err, readOnlyMode) || errors.Is(err, errReadOnly)
	case galera:
		return isNumber(err, outsideGroup) || errors.Is(err, errOutside)
	}
	return false
}

// writable is one more condition of a statement that locks rows, for a server that
// may be replaced: it finds none once that takes no writes any more. It would go on
// to lock them.
func writable(cfg impls.Config) string {
	if cfg.Topology == replicated {
		return " AND NOT @@global.read_only"
	}
	return ""
}
