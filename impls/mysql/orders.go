package mysql

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/impls"
)

// orders is a table in which a row is a lock: the documents' table of locked
// orders. The key is compared byte by byte and may be longer than theirs; memo
// says what the locker liked to note.
type orders struct {
	recipe string // whose table it is
	table  string
	column string // one more, with its definition and a comma; or ""
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

// orderClient is a client of a table of orders. The table does not say which
// attempt a row belongs to, so the client remembers which of its attempts may
// have one: true if the server has said so, false as long as it is in doubt.
type orderClient struct {
	*client
	orders
	mine map[claim]bool
}

func (o orders) open(ctx context.Context, cfg impls.Config) (*orderClient, error) {
	c, err := open(ctx, cfg, options{})
	if err != nil {
		return nil, err
	}
	return &orderClient{client: c, orders: o, mine: make(map[claim]bool)}, nil
}

// insert adds the row of key: nil if the attempt has the lock now. It does not
// end with ctx once it is sent, as the statement waits for nobody for long;
// cut short, it would leave a doubt that the table cannot answer.
func (c *orderClient) insert(ctx context.Context, key string, a impls.Attempt, memo string) error {
	at := claim{key, a}
	c.mine[at] = false
	rows, err := c.change(ctx, "acquire", key, "INSERT INTO "+c.table+" (type, order_id, memo) VALUES (0, ?, ?)", key, memo)
	switch {
	case err == nil && rows == 1:
		c.mine[at] = true
		return nil
	case errors.Is(err, errRefused):
		// Many inserts of one key end each other's: that the lock is not ours
		// is all that the documents' code makes of it.
		err = fmt.Errorf("%w: %v", impls.ErrBusy, err)
	}
	if !errors.Is(err, impls.ErrUnknown) {
		delete(c.mine, at)
	}
	return err
}

// remove deletes the row of key, whoever's it is: nil, or ErrLost if there was
// none.
func (c *orderClient) remove(ctx context.Context, doing, key string) error {
	return c.must(ctx, doing, key, "DELETE FROM "+c.table+" WHERE order_id = ?", key)
}

// must runs a statement that changes one row unless the lock was lost. The
// server may refuse for a moment, by a deadlock with inserts of the key; then it
// is asked again.
func (c *orderClient) must(ctx context.Context, doing, key, stmt string, args ...any) error {
	rows, err := c.persist(ctx, doing, key, stmt, args...)
	if err == nil && rows == 0 {
		return impls.ErrLost
	}
	return err
}

// persist is change, repeated as long as the server refuses for the moment.
func (c *orderClient) persist(ctx context.Context, doing, key, stmt string, args ...any) (int64, error) {
	for {
		rows, err := c.change(ctx, doing, key, stmt, args...)
		if !errors.Is(err, errRefused) || c.cfg.Clock.Sleep(ctx, c.cfg.Wait.Next()) != nil {
			return rows, err
		}
	}
}

// change runs a statement to its end and tells how many rows it changed.
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
	rows, _ = res.RowsAffected() // the driver has it from the reply
	return rows, nil
}

// hold is the hold of an attempt, which free ends on the server.
func (c *orderClient) hold(key string, a impls.Attempt, free func(ctx context.Context) error) *hold {
	return newHold(key, a, nil, func(ctx context.Context) error { return c.finish(ctx, "release", claim{key, a}, free) })
}

// finish ends what an attempt may have by free, unless it is known to have
// nothing. What is still under way on connections given up is settled first:
// a delete that comes late would free another's lock.
func (c *orderClient) finish(ctx context.Context, doing string, at claim, free func(ctx context.Context) error) error {
	if _, may := c.mine[at]; !may {
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
		c.mine[at] = false
	case impls.Definite(err):
		delete(c.mine, at)
	}
	return err
}

// others counts the attempts, other than at, that certainly hold at's key.
func (c *orderClient) others(at claim) (n int) {
	for other, certain := range c.mine {
		if certain && other.key == at.key && other != at {
			n++
		}
	}
	return n
}

// forgetDoubts drops the attempts on key that are in doubt, once it is sure
// that they have nothing.
func (c *orderClient) forgetDoubts(key string) {
	for at, certain := range c.mine {
		if !certain && at.key == key {
			delete(c.mine, at)
		}
	}
}
