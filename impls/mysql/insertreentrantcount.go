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
	// stepCountUp: the row belongs to this client, and its count is increased next.
	stepCountUp impls.Step = "count-up"
	// stepDelete: the count was decreased, and the row is deleted next if it is 0.
	stepDelete impls.Step = "delete"
)

// insertCount is mysql/insert-reentrant-count: mysql/insert-reentrant with a
// counter in the row, so that only the last release deletes it.
//
// Document: an article on the design of locks: the counter that it proposes
// without statements.
//
//	acquire  INSERT the row with our name and the count 1;
//	         if it exists: SELECT it by key and our name, if found: UPDATE its count + 1;
//	         again after a wait while it is another client's
//	release  UPDATE its count - 1, if it has our name;
//	         DELETE it, if it has our name and the count 0
//
// Round trips: 1 to acquire, 3 to acquire again, 2 to release; a waiter adds 2
// per poll.
// Bound: none. Takeover: none, as with mysql/insert.
// Guarantee: one holder, which may lock again and must release as often.
// Failure: a holder dies, also between the two requests of its last release: a
// row with the count 0 is a locked key, too.
//
// The row has the client's name, not the attempt's, and a count. After an
// unknown outcome Cleanup, and a repeated release, set the count to the number
// of holds that this client is sure of, and delete the row if there is none;
// the unknown attempts then hold nothing.
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
		Promise:  "one holder, which may lock again, until it has released it as often, while no commit is lost (failover); no other end",
		Document: "an article on the design of locks: the table of locked orders with the owner's name and a counter",
		Bound:    impls.BoundNone,
		Fails:    "a holder that dies, or whose release is lost, keeps the key forever",
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
	c.record[at] = true
	return c.hold(key, a, func(ctx context.Context) error { return c.leave(ctx, at) }), nil
}

// again increases the count if the row is this client's: nil, or ErrBusy.
func (c *countClient) again(ctx context.Context, key string, a impls.Attempt) error {
	c.cfg.Reach(ctx, stepSelect)
	if err := c.look(ctx, key); err != nil {
		return err
	}
	c.cfg.Reach(ctx, stepCountUp)
	at := claim{key, a}
	c.record[at] = false
	err := c.must(ctx, "acquire", key, "UPDATE "+c.table+" SET locked = locked + 1 WHERE order_id = ? AND memo = ?", key, c.name)
	if errors.Is(err, impls.ErrLost) || errors.Is(err, errRefused) {
		err = impls.ErrBusy // the row is gone, or a deadlock: retry
	}
	if err != nil && !errors.Is(err, impls.ErrUnknown) {
		delete(c.record, at)
	}
	return err
}

// leave decreases the count, and deletes the row at 0. After an unknown outcome
// the count is not known, and the row is repaired instead.
func (c *countClient) leave(ctx context.Context, at claim) error {
	if !c.record[at] {
		return c.repair(ctx, "release", at)
	}
	err := c.must(ctx, "release", at.key, "UPDATE "+c.table+" SET locked = locked - 1 WHERE order_id = ? AND memo = ?", at.key, c.name)
	if err != nil {
		return err
	}
	c.record[at] = false // counted: the following requests must not be repeated
	c.cfg.Reach(ctx, stepDelete)
	_, err = c.persist(ctx, "release", at.key, "DELETE FROM "+c.table+" WHERE order_id = ? AND memo = ? AND locked = 0", at.key, c.name)
	return err
}

// repair sets the count to this client's certain holds, without at: nil if it
// was higher, else ErrLost.
func (c *countClient) repair(ctx context.Context, doing string, at claim) error {
	n := c.others(at)
	var err error
	if n > 0 {
		err = c.must(ctx, doing, at.key, "UPDATE "+c.table+" SET locked = ? WHERE order_id = ? AND memo = ? AND locked > ?", n, at.key, c.name, n)
	} else {
		err = c.must(ctx, doing, at.key, "DELETE FROM "+c.table+" WHERE order_id = ? AND memo = ?", at.key, c.name)
	}
	if impls.Definite(err) {
		c.forgetUnknown(at.key)
	}
	return err
}

// Cleanup decreases the count, or deletes the row if no other attempt of this
// client holds it.
func (c *countClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	at := claim{key, a}
	return c.finish(ctx, "clean up", at, func(ctx context.Context) error {
		if c.record[at] {
			return c.leave(ctx, at)
		}
		return c.repair(ctx, "clean up", at)
	})
}
