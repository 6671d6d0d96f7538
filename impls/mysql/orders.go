package mysql

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/impls"
)

// orders is a table in which a row is a lock: the documents' table of locked
// orders. Keys are compared byte by byte and may be longer than in the
// documents; memo is a note of the owner.
type orders struct {
	recipe string
	table  string
	column string // a further column, with its definition and a comma; or ""
}

func (o orders) create() string {
	return `CREATE TABLE IF NOT EXISTS ` + o.table + ` (
  id          INT              NOT NULL AUTO_INCREMENT PRIMARY KEY,
  type        TINYINT UNSIGNED NOT NULL DEFAULT 0,
  order_id    VARBINARY(255)   NOT NULL DEFAULT '',
  memo        VARCHAR(1024)    NOT NULL DEFAULT '',
  ` + o.column + `
  update_time TIMESTAMP        NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  UNIQUE KEY uidx_order_id (order_id)
) ENGINE=InnoDB`
}

// prepare creates the table. A free key has no row.
func (o orders) prepare(ctx context.Context, cfg impls.Config, keys []string) error {
	c, err := createTable(ctx, cfg, o.recipe, o.create(), keys)
	if err != nil {
		return err
	}
	return c.Close()
}

// orderClient is a client of a table of orders. A row does not store its
// attempt, so the client records which of its attempts may have one: true if
// the server confirmed it, false if it is unknown.
type orderClient struct {
	*client
	orders
	record map[claim]bool
}

func (o orders) open(ctx context.Context, cfg impls.Config) (*orderClient, error) {
	c, err := open(ctx, cfg, options{})
	if err != nil {
		return nil, err
	}
	return &orderClient{client: c, orders: o, record: make(map[claim]bool)}, nil
}

// insert adds the row of key: nil if the attempt has the lock now. Once sent it
// does not end with ctx, since the statement does not wait for long, and the
// table cannot resolve an unknown outcome.
func (c *orderClient) insert(ctx context.Context, key string, a impls.Attempt, memo string) error {
	at := claim{key, a}
	c.record[at] = false
	rows, err := c.change(ctx, "acquire", key, "INSERT INTO "+c.table+" (type, order_id, memo) VALUES (0, ?, ?)", key, memo)
	switch {
	case err == nil && rows == 1:
		c.record[at] = true
		return nil
	case errors.Is(err, errRefused):
		// Concurrent inserts of one key deadlock: the documents' code treats
		// that as busy.
		err = fmt.Errorf("%w: %v", impls.ErrBusy, err)
	}
	if !errors.Is(err, impls.ErrUnknown) {
		delete(c.record, at)
	}
	return err
}

// remove deletes the row of key, of any owner: nil, or ErrLost if there was none.
func (c *orderClient) remove(ctx context.Context, doing, key string) error {
	return c.must(ctx, doing, key, "DELETE FROM "+c.table+" WHERE order_id = ?", key)
}

// must runs a statement that changes one row unless the lock was lost. It
// retries after a deadlock with inserts of the key.
func (c *orderClient) must(ctx context.Context, doing, key, stmt string, args ...any) error {
	rows, err := c.persist(ctx, doing, key, stmt, args...)
	if err == nil && rows == 0 {
		return impls.ErrLost
	}
	return err
}

// persist is change, repeated after deadlocks.
func (c *orderClient) persist(ctx context.Context, doing, key, stmt string, args ...any) (int64, error) {
	for {
		rows, err := c.change(ctx, doing, key, stmt, args...)
		if !errors.Is(err, errRefused) || c.cfg.Clock.Sleep(ctx, c.cfg.Wait.Next()) != nil {
			return rows, err
		}
	}
}

// change runs a statement to its end and returns the number of changed rows.
func (c *orderClient) change(ctx context.Context, doing, key, stmt string, args ...any) (rows int64, err error) {
	if err := started(ctx, doing, key); err != nil {
		return 0, err
	}
	s, err := c.session(ctx)
	if err != nil {
		return 0, outcome(doing, key, err)
	}
	res, err := c.exec(context.WithoutCancel(ctx), s, stmt, args...)
	if err != nil {
		return 0, c.fail(doing, key, err)
	}
	rows, _ = res.RowsAffected() // the driver takes it from the reply
	return rows, nil
}

// hold is the hold of an attempt that free releases.
func (c *orderClient) hold(key string, a impls.Attempt, free func(ctx context.Context) error) *hold {
	return newHold(key, a, nil, func(ctx context.Context) error { return c.finish(ctx, "release", claim{key, a}, free) })
}

// finish ends an attempt with free, unless it certainly has nothing. It first
// ends the requests on abandoned connections: a late delete would free another
// client's lock.
func (c *orderClient) finish(ctx context.Context, doing string, at claim, free func(ctx context.Context) error) error {
	if _, may := c.record[at]; !may {
		return impls.ErrLost
	}
	if err := started(ctx, doing, at.key); err != nil {
		return err
	}
	if err := c.settle(ctx, doing, at.key); err != nil {
		return err
	}
	err := free(ctx)
	switch {
	case errors.Is(err, impls.ErrUnknown):
		c.record[at] = false
	case impls.Definite(err):
		delete(c.record, at)
	}
	return err
}

// others counts the attempts, other than at, that certainly hold at's key.
func (c *orderClient) others(at claim) (n int) {
	for other, certain := range c.record {
		if certain && other.key == at.key && other != at {
			n++
		}
	}
	return n
}

// forgetUnknown drops the unknown attempts on key, once they certainly have
// nothing.
func (c *orderClient) forgetUnknown(key string) {
	for at, certain := range c.record {
		if !certain && at.key == key {
			delete(c.record, at)
		}
	}
}
