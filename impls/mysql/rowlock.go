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
	stepDraw impls.Step = "draw"
	// stepRollback is when the row was refused, before the transaction ends.
	stepRollback impls.Step = "rollback"
)

// rowWait is how long a statement waits for a row, at most: the server's own
// default. Asking again means standing at the end of the queue again.
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
	// Others may have drawn all connections of a shared pool already.
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

// rowLockClient draws a connection for every attempt. Its client is beside
// them, to end what was given up.
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
	seen bool // the server said so of the connection, given up
}

// Close ends what this client has drawn, and the pool if it is its own.
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

// ask begins a transaction that has the row, or waits for it.
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

// refused names the outcome of a SELECT that was answered by err. If the server
// said it the transaction may have other rows still, of a table without an
// index, and is rolled back: then nothing is open, whatever was said.
func (c *rowLockClient) refused(ctx context.Context, s *session, at claim, patient bool, err error) error {
	doing := "acquire"
	var said *mysql.MySQLError
	if !errors.As(err, &said) && !errors.Is(err, sql.ErrNoRows) {
		err = outcome(doing, at.key, err)
		if errors.Is(err, impls.ErrUnknown) {
			c.abandon(s)
		} else {
			giveUp(s.conn)
			delete(c.stakes, at)
		}
		return err
	}
	if said == nil && c.cfg.Topology == replicated {
		err = fmt.Errorf("its row is missing, or %w any more", errReadOnly)
	}
	if c.left(err) {
		giveUp(s.conn) // others would draw it again; it has no row
		delete(c.stakes, at)
		return outcome(doing, at.key, err)
	}
	c.cfg.Reach(ctx, stepRollback)
	if end := c.end(ctx, doing, at, "ROLLBACK"); end != nil {
		return end
	}
	switch {
	case said == nil:
		return fmt.Errorf("acquire %s: %w: its row is missing; prepare the key first", at.key, impls.ErrFailed)
	case said.Number == queryInterrupted && ctx.Err() != nil:
		return impls.GaveUp(at.key, ctx.Err())
	case said.Number == lockWaitTimeout && !patient:
		return impls.ErrBusy
	}
	if out := outcome(doing, at.key, err); !errors.Is(out, impls.ErrUnknown) {
		return out
	}
	return fmt.Errorf("acquire %s: %w: %w", at.key, impls.ErrFailed, err)
}

// end ends the transaction of an attempt, and gives its connection back to the
// pool, or up if the answer is in doubt.
func (c *rowLockClient) end(ctx context.Context, doing string, at claim, stmt string) error {
	s := c.stakes[at].s
	if err := c.quick(ctx, s, stmt); err != nil {
		c.abandon(s)
		return fmt.Errorf("%s %s: %w: %w", doing, at.key, impls.ErrUnknown, err)
	}
	delete(c.stakes, at)
	s.conn.Close() // which is how database/sql calls it
	return nil
}

// finish commits the transaction of an attempt: nil, or ErrLost if it had none
// or its connection was given up, and is gone by now.
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

// Cleanup ends the transaction of the attempt. If its connection was given up,
// it kills that, and answers when the server has it no more.
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

// look asks whether the server has a transaction of dead, which has its row or
// waits for it.
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
		// The server answers this question from a copy as long as that is no
		// older than 100 ms.
		if err := c.cfg.Clock.Sleep(ctx, 150*time.Millisecond); err != nil {
			return false, err
		}
	}
}
