package mysql

import (
	"context"

	"github.com/lockbench/lockbench/impls"
)

// insert is mysql/insert: a row with a unique key, which one client can insert,
// and whose deletion frees the lock.
//
// Document: a blog's comparison of three ways to build a lock, part on the
// database's table, with its loop around the insert for waiting and without its
// job that deletes old rows, which is mysql/insert-reaper; an article on the
// design of locks has the same as its table of locked orders.
//
//	acquire  INSERT the row; again after a wait while its key exists
//	release  DELETE the row, by its key alone
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll.
// Bound: none. Takeover: none: the row of a dead holder remains until a client
// deletes it.
// Guarantee: one holder.
// Failure: a holder dies, or its release is lost: the key is locked forever.
// The row does not store the owner, and the delete does not check it. With many
// waiters most inserts are deadlock victims, which counts as busy.
//
// Cleanup after an unknown insert or delete deletes the row if this client's
// record shows that the attempt may have it; if the insert had been rejected,
// it frees another client's lock.
type insert struct{ anyTTL }

func (insert) orders() orders { return orders{recipe: "mysql/insert", table: "lockbench_insert"} }

func (insert) Info() impls.Info {
	return impls.Info{
		ID:         "mysql/insert",
		Backend:    "mysql",
		Summary:    "INSERT of a row with a unique key, DELETE by that key",
		Promise:    "one holder, until it deletes the row, while no commit is lost (failover); no other end",
		Document:   "a blog's comparison of three ways to build a lock: the database's table",
		Bound:      impls.BoundNone,
		Fails:      "a holder that dies, or whose release is lost, keeps the key forever; the delete, of a clean-up too, does not check the owner",
		Properties: []impls.Property{impls.Exclusive, impls.Blocking, impls.NonBlocking, impls.CleansUp, impls.Once},
		Polls:      true,

		Topologies: rowsAnywhere(),
		RoundTrips: 2,
		Requests:   []string{"com_insert", "com_delete", "com_kill"},
	}
}

func (r insert) Prepare(ctx context.Context, cfg impls.Config, keys []string) error {
	return r.orders().prepare(ctx, cfg, keys)
}

func (r insert) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := r.orders().open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &insertClient{c}, nil
}

type insertClient struct{ *orderClient }

func (c *insertClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *insertClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	if err := c.insert(ctx, key, a, ""); err != nil {
		return nil, err
	}
	return c.hold(key, a, func(ctx context.Context) error { return c.remove(ctx, "release", key) }), nil
}

// Cleanup deletes the row, of any owner, if the attempt may have it.
func (c *insertClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return c.finish(ctx, "clean up", claim{key, a}, func(ctx context.Context) error { return c.remove(ctx, "clean up", key) })
}
