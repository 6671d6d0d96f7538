package mysql

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/lockbench/lockbench/impls"
)

// The steps between the requests of mysql/insert-reentrant-count, besides
// stepSelect.
const (
	// stepCountUp is when the row was found to be ours, before it is counted up.
	stepCountUp impls.Step = "count-up"
	// stepDelete is when it was counted down, before it is deleted at 0.
	stepDelete impls.Step = "delete"
)

// insertCount is mysql/insert-reentrant-count: mysql/insert-reentrant with a
// counter in the row, so that the last release deletes it and no other.
//
//	acquire  INSERT the row with our name and the count 1;
//	         if it is there: SELECT it by key and our name, found: UPDATE its count, one more;
//	         again after a wait as long as it is another's
//	release  UPDATE its count, one less, if it has our name;
//	         DELETE it, if it has our name and the count 0
//
// Round trips: 1 to acquire, 3 to acquire again, 2 to release; a waiter adds 2
// per poll.
// Bound: none. Takeover: none, as with mysql/insert.
//
// It promises one holder, who may take the lock again and must release it as
// often. It fails for ever when a holder dies, also between the two requests of
// its last release: a row with the count 0 is a locked key, too.
//
// The row has the client's name, not the attempt's, and a count. After a doubt
// Cleanup, and a release that is repeated, set the count to the number of holds
// that this client is sure of; at none they delete the row. Whichever attempts
// were in doubt have nothing from then on.
//
// Source: an article on the design of locks: the cure that it names, a counter,
// whose statements it leaves to the reader.
type insertCount struct{ anyTTL }

func (insertCount) orders() orders {
	return orders{
		recipe: "mysql/insert-reentrant-count",
		table:  "lockbench_insert_reentrant_count",
		column: "locked      INT              NOT NULL DEFAULT 1,",
	}
}

func (insertCount) Info() impls.Info {
	return impls.Info{
		ID:       "mysql/insert-reentrant-count",
		Backend:  "mysql",
		Summary:  "INSERT of a row with a unique key, the owner's name and a count; SELECT and UPDATE of one's own; DELETE at 0",
		Promise:  "one holder, who may take the lock again, until it has released it as often, while no commit is lost (failover); no other end",
		Document: "an article on the design of locks: the table of locked orders with the owner's name and a counter",
		Bound:    impls.BoundNone,
		Fails:    "a holder that dies, or whose release is lost, keeps the key for ever",
		Properties: []impls.Property{impls.Exclusive, impls.Symmetric, impls.Reenterable, impls.Blocking, impls.NonBlocking,
			impls.CleansUp, impls.Once},
		Steps: []impls.Step{stepSelect, stepCountUp, stepDelete},
		Polls: true,

		Topologies: anywhere(),
		RoundTrips: 3,
		Requests:   []string{"com_insert", "com_select", "com_update", "com_delete", "com_kill"},
	}
}

func (r insertCount) Prepare(ctx context.Context, cfg impls.Config, keys []string) error {
	return r.orders().prepare(ctx, cfg, keys)
}

func (r insertCount) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := r.orders().open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &countClient{reentrantClient{orderClient: c, name: rand.Text()}}, nil
}

// countClient is an impls.Reentrant.
type countClient struct{ reentrantClient }

func (c *countClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *countClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	err := c.insert(ctx, key, a, c.name)
	if errors.Is(err, impls.ErrBusy) {
		err = c.again(ctx, key, a)
	}
	if err != nil {
		return nil, err
	}
	at := claim{key, a}
	c.mine[at] = true
	return c.hold(key, a, func(ctx context.Context) error { return c.leave(ctx, at) }), nil
}

// again counts the row up if it is this client's: nil, else ErrBusy.
func (c *countClient) again(ctx context.Context, key string, a impls.Attempt) error {
	c.cfg.Reach(ctx, stepSelect)
	if err := c.look(ctx, key); err != nil {
		return err
	}
	c.cfg.Reach(ctx, stepCountUp)
	at := claim{key, a}
	c.mine[at] = false
	err := c.must(ctx, "acquire", key, "UPDATE "+c.table+" SET locked = locked + 1 WHERE order_id = ? AND memo = ?", key, c.name)
	if errors.Is(err, impls.ErrLost) || errors.Is(err, errRefused) {
		err = impls.ErrBusy // the row is gone, or for the moment out of reach: ask again
	}
	if err != nil && !errors.Is(err, impls.ErrUnknown) {
		delete(c.mine, at)
	}
	return err
}

// leave counts the row down, and deletes it at 0. After a doubt it is not known
// what was counted, and the row is mended instead.
func (c *countClient) leave(ctx context.Context, at claim) error {
	if !c.mine[at] {
		return c.mend(ctx, "release", at)
	}
	err := c.must(ctx, "release", at.key, "UPDATE "+c.table+" SET locked = locked - 1 WHERE order_id = ? AND memo = ?", at.key, c.name)
	if err != nil {
		return err
	}
	c.mine[at] = false // it has been counted: what follows is not to be repeated
	c.cfg.Reach(ctx, stepDelete)
	_, err = c.persist(ctx, "release", at.key, "DELETE FROM "+c.table+" WHERE order_id = ? AND memo = ? AND locked = 0", at.key, c.name)
	return err
}

// mend makes the count what this client is sure of, without at: nil if it was
// more, else ErrLost.
func (c *countClient) mend(ctx context.Context, doing string, at claim) error {
	n := c.others(at)
	var err error
	if n > 0 {
		err = c.must(ctx, doing, at.key, "UPDATE "+c.table+" SET locked = ? WHERE order_id = ? AND memo = ? AND locked > ?", n, at.key, c.name, n)
	} else {
		err = c.must(ctx, doing, at.key, "DELETE FROM "+c.table+" WHERE order_id = ? AND memo = ?", at.key, c.name)
	}
	if impls.Definite(err) {
		c.forgetDoubts(at.key)
	}
	return err
}

// Cleanup takes the attempt out of the count, or deletes the row if no other
// attempt of this client holds it.
func (c *countClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	at := claim{key, a}
	return c.finish(ctx, "clean up", at, func(ctx context.Context) error {
		if c.mine[at] {
			return c.leave(ctx, at)
		}
		return c.mend(ctx, "clean up", at)
	})
}
