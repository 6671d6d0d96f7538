package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"sync"

	"github.com/lockbench/lockbench/impls"
)

// pool has the connections of transactions: a client's own, which opens as many
// as needed, or one shared by the clients of a process, which opens a few and
// makes other clients wait. It is safe for concurrent use.
type pool struct {
	db *sql.DB

	mu sync.Mutex
	// known are the connections' identities, by the driver's connection.
	known map[any]identity
}

// openPool opens a pool of at most size connections; 0 means no limit.
func openPool(cfg impls.Config, size int) (*pool, error) {
	db, _, err := openDB(cfg, options{wait: rowWait, transactions: true})
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(max(size, idleConnections))
	return &pool{db: db, known: make(map[any]identity)}, nil
}

// idleConnections is the number of idle connections that a client's own pool keeps.
const idleConnections = 8

// sharedPool is the pool of cfg.Shared, by the recipe's id.
func sharedPool(cfg impls.Config, id string) (*pool, error) {
	shared, err := cfg.Shared.Get(id, func() (io.Closer, error) { return openPool(cfg, cfg.Shared.Connections) })
	if err != nil {
		return nil, err
	}
	p, ok := shared.(*pool)
	if !ok {
		return nil, fmt.Errorf("open %s client: the shared value of this name is a %T, not its pool of connections", id, shared)
	}
	return p, nil
}

// Close closes the idle connections.
func (p *pool) Close() error { return p.db.Close() }

// draw takes a connection out of the pool, and waits until there is one. Its
// errors are ConnectErrors.
func (p *pool) draw(ctx context.Context) (*session, error) {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		if st := p.db.Stats(); st.MaxOpenConnections > 0 && st.InUse >= st.MaxOpenConnections {
			err = fmt.Errorf("all %d connections of the pool are in use, by holders and waiters: %w", st.InUse, err)
		}
		return nil, &impls.ConnectError{Err: err}
	}
	var name any
	_ = conn.Raw(func(driverConn any) error { name = driverConn; return nil })
	who, ok := p.lookUp(name)
	if !ok {
		if who, err = identify(ctx, conn); err == nil {
			err = p.add(ctx, conn, name, who)
		}
		if err != nil {
			return nil, err
		}
	}
	return newSession(who, conn), nil
}

func (p *pool) lookUp(name any) (identity, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who, ok := p.known[name]
	return who, ok
}

// add stores the identity of conn. It ends the transaction that reading the
// identity began.
func (p *pool) add(ctx context.Context, conn *sql.Conn, name any, who identity) error {
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		giveUp(conn)
		return &impls.ConnectError{Err: err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) > p.db.Stats().OpenConnections {
		clear(p.known) // most are closed by now; the others are identified again
	}
	p.known[name] = who
	return nil
}
