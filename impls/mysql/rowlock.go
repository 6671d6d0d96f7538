package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/lockbench/lockbench/impls"
)

// The steps of the recipes that lock rows, besides impls.StepWaiting.
const (
	// stepDraw is before a connection is drawn from the pool.
	// stepDraw: a connection is drawn from the pool next.
	stepDraw impls.Step = "draw"
	// stepRollback: the row is busy, and the transaction ends next.
	stepRollback impls.Step = "rollback"
)

// rowWait is how long a statement waits for a row, at most: the server's own
// default. The next one starts at the end of the queue.
const rowWait = 50 * time.Second

func (r rowTable) open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	side, err := unconnected(cfg, options{})
	if err != nil {
		return nil, err
	}
	rc := &rowLockClient{client: side, rowTable: r, stakes: make(map[claim]*stake)}
	if cfg.Shared != nil {
		rc.pool, err = sharedPool(cfg, r.recipe)
	} else {
		rc.pool, err = openPool(cfg, 0)
		rc.own = true
	}
	if err != nil {
		side.Close()
		return nil, err
	}
	// A shared pool may have no connection left.
	if rc.own {
		s, err := rc.pool.draw(ctx)
		if err != nil {
			rc.Close()
			return nil, fmt.Errorf("open %s client: %w", r.recipe, err)
		}
		s.conn.Close()
	}
	return rc, nil
}

// rowLockClient draws a connection for every attempt. Its client has a separate
// one, to end abandoned connections.
type rowLockClient struct {
	*client
	rowTable
	pool   *pool
	own    bool // the pool is this client's
	stakes map[claim]*stake
}

// stake is the connection on which an attempt may have its row, or wait for it.
type stake struct {
	s    *session
	seen bool // the server had a transaction on the abandoned connection
}

// Close closes the drawn connections, and the pool if it is the client's own.
func (c *rowLockClient) Close() error {
	for _, at := range c.stakes {
		giveUp(at.s.conn) // closing twice does no harm
	}
	var err error
	if c.own {
		err = c.pool.Close()
	}
	return errors.Join(err, c.client.Close())
}

func (c *rowLockClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return retryUntilAcquired(ctx, c.cfg, key, func() (impls.Hold, error) { return c.ask(ctx, key, a, true) })
}

func (c *rowLockClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return c.ask(ctx, key, a, false)
}

// ask begins a transaction that holds the row, or waits for it.
func (c *rowLockClient) ask(ctx context.Context, key string, a impls.Attempt, patient bool) (impls.Hold, error) {
	c.cfg.Reach(ctx, stepDraw)
	if err := started(ctx, "acquire", key); err != nil {
		return nil, err
	}
	s, err := c.pool.draw(ctx)
	if err != nil {
		return nil, outcome("acquire", key, err)
	}
	stmt := "SELECT id FROM " + c.table + " WHERE method_name = ?" + writable(c.cfg) + " FOR UPDATE"
	if patient {
		c.cfg.Reach(ctx, impls.StepWaiting)
	} else {
		stmt += " NOWAIT"
	}
	at := claim{key, a}
	c.stakes[at] = &stake{s: s}
	if _, err := c.wait(ctx, s, stmt, key); err != nil {
		return nil, c.refused(ctx, s, at, patient, err)
	}
	return newHold(key, a, s.broken, func(ctx context.Context) error { return c.finish(ctx, "release", at) }), nil
}

// refused returns the outcome of a SELECT that failed with err. After an error
// of the server the transaction may still have other rows, of a table without
// an index, and is rolled back: then the outcome is definite.
func (c *rowLockClient) refused(ctx context.Context, s *session, at claim, patient bool, err error) error {
	doing := "acquire"
	var reply *mysql.MySQLError
	if !errors.As(err, &reply) && !errors.Is(err, sql.ErrNoRows) {
		err = outcome(doing, at.key, err)
		if errors.Is(err, impls.ErrUnknown) {
			c.abandon(s)
		} else {
			giveUp(s.conn)
			delete(c.stakes, at)
		}
		return err
	}
	if reply == nil && c.cfg.Topology == replicated {
		err = fmt.Errorf("its row is missing, or %w any more", errReadOnly)
	}
	if c.left(err) {
		giveUp(s.conn) // or the pool would use it again; it has no row
		delete(c.stakes, at)
		return outcome(doing, at.key, err)
	}
	c.cfg.Reach(ctx, stepRollback)
	if end := c.end(ctx, doing, at, "ROLLBACK"); end != nil {
		return end
	}
	switch {
	case reply == nil:
		return fmt.Errorf("acquire %s: %w: its row is missing; prepare the key first", at.key, impls.ErrFailed)
	case reply.Number == queryInterrupted && ctx.Err() != nil:
		return impls.GaveUp(at.key, ctx.Err())
	case reply.Number == lockWaitTimeout && !patient:
		return impls.ErrBusy
	}
	if out := outcome(doing, at.key, err); !errors.Is(out, impls.ErrUnknown) {
		return out
	}
	return fmt.Errorf("acquire %s: %w: %w", at.key, impls.ErrFailed, err)
}

// end ends the transaction of an attempt, and returns its connection to the
// pool, or abandons it if the outcome is unknown.
func (c *rowLockClient) end(ctx context.Context, doing string, at claim, stmt string) error {
	s := c.stakes[at].s
	if err := c.quick(ctx, s, stmt); err != nil {
		c.abandon(s)
		return fmt.Errorf("%s %s: %w: %w", doing, at.key, impls.ErrUnknown, err)
	}
	delete(c.stakes, at)
	s.conn.Close() // returns it to the pool
	return nil
}

// finish commits the transaction of an attempt: nil, or ErrLost if it had none
// or its connection was abandoned, and is gone by now.
func (c *rowLockClient) finish(ctx context.Context, doing string, at claim) error {
	st := c.stakes[at]
	if st == nil {
		return impls.ErrLost
	}
	if err := started(ctx, doing, at.key); err != nil {
		return err
	}
	if !st.s.abandoned() {
		return c.end(ctx, doing, at, "COMMIT")
	}
	if err := c.settle(ctx, doing, at.key); err != nil {
		return err
	}
	delete(c.stakes, at)
	return impls.ErrLost
}

// Cleanup ends the transaction of the attempt. If its connection was abandoned,
// it kills that, and returns when the server has ended it.
func (c *rowLockClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	at := claim{key, a}
	st := c.stakes[at]
	if st != nil && st.s.abandoned() && !st.seen && ctx.Err() == nil {
		seen, err := c.look(ctx, st.s)
		if err != nil {
			return fmt.Errorf("clean up %s: %w: %w", key, impls.ErrUnknown, err)
		}
		st.seen = seen
	}
	err := c.finish(ctx, "clean up", at)
	if errors.Is(err, impls.ErrLost) && st != nil && st.seen {
		return nil
	}
	return err
}

// look reports whether the server has a transaction of dead, which holds its
// row or waits for it.
func (c *rowLockClient) look(ctx context.Context, dead *session) (bool, error) {
	s, err := c.session(ctx)
	if err != nil || s.server != dead.server {
		return false, err
	}
	for again := true; ; again = false {
		n, err := c.wait(ctx, s, `SELECT COUNT(*) FROM information_schema.innodb_trx
JOIN information_schema.processlist ON id = trx_mysql_thread_id
WHERE id = ? AND host = ?`, dead.id, dead.host)
		if err != nil {
			return false, c.fail("look for", fmt.Sprintf("the transaction of connection %d", dead.id), err)
		}
		if n.Int64 > 0 || !again {
			return n.Int64 > 0, nil
		}
		// The server answers from a copy that may be up to 100 ms old.
		if err := c.cfg.Clock.Sleep(ctx, 150*time.Millisecond); err != nil {
			return false, err
		}
	}
}
