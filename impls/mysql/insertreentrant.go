package mysql

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/impls"
)

// stepSelect: an insert was rejected, and the owner of the row is read next.
const stepSelect impls.Step = "select"

// insertReentrant is mysql/insert-reentrant: mysql/insert with the client's
// name in the row, so that the client finds its own lock and locks again.
//
// Document: an article on the design of locks: the owner's name in the table of
// locked orders. Here each client has a random name.
//
//	acquire  INSERT the row with our name;
//	         if it exists: SELECT it by key and our name, held if found;
//	         again after a wait while it is another client's
//	release  DELETE the row, by its key alone
//
// Round trips: 1 to acquire, 2 to acquire again, 1 to release; a waiter adds 2
// per poll.
// Bound: none. Takeover: none, as with mysql/insert.
// Guarantee: one holder that locks once.
// Failure: a holder that locks twice: the first release deletes the row under
// the outer hold, and the second one deletes whatever row is there then. A
// holder that dies: the key is locked forever.
//
// Cleanup of an inner attempt has nothing to undo; that of an outer one deletes
// the row if it has this client's name.
type insertReentrant struct{ anyTTL }

func (insertReentrant) orders() orders {
	return orders{recipe: "mysql/insert-reentrant", table: "lockbench_insert_reentrant"}
}

func (insertReentrant) Info() impls.Info {
	return impls.Info{
		ID:       "mysql/insert-reentrant",
		Backend:  "mysql",
		Summary:  "INSERT of a row with a unique key and the owner's name; SELECT finds one's own; DELETE by the key",
		Promise:  "one holder, if no client locks twice, until it deletes the row, while no commit is lost (failover); no other end",
		Document: "an article on the design of locks: the table of locked orders with the owner's name",
		Bound:    impls.BoundNone,
		Fails:    "the inner release frees the lock under the outer hold, whose own release then frees another client's; a holder that dies keeps the key forever",
		Properties: []impls.Property{impls.Exclusive, impls.Symmetric, impls.Blocking, impls.NonBlocking,
			impls.CleansUp, impls.Once},
		Steps: []impls.Step{stepSelect},
		Polls: true,

		Topologies: anywhere(),
		RoundTrips: 2,
		Requests:   []string{"com_insert", "com_select", "com_delete", "com_kill"},
	}
}

func (r insertReentrant) Prepare(ctx context.Context, cfg impls.Config, keys []string) error {
	return r.orders().prepare(ctx, cfg, keys)
}

func (r insertReentrant) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := r.orders().open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &reentrantClient{orderClient: c, name: rand.Text()}, nil
}

// reentrantClient is an impls.Reentrant.
type reentrantClient struct {
	*orderClient
	name string // this client's name in the rows
}

// Depth is how many of this client's attempts were granted key and have not
// released it.
func (c *reentrantClient) Depth(key string) int { return c.others(claim{key: key}) }

func (c *reentrantClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *reentrantClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	err := c.insert(ctx, key, a, c.name)
	if errors.Is(err, impls.ErrBusy) {
		c.cfg.Reach(ctx, stepSelect)
		err = c.look(ctx, key)
	}
	if err != nil {
		return nil, err
	}
	c.record[claim{key, a}] = true
	return c.hold(key, a, func(ctx context.Context) error { return c.remove(ctx, "release", key) }), nil
}

// look returns nil if the row of key has this client's name, else ErrBusy. It
// changes nothing, so a failure is definite.
func (c *reentrantClient) look(ctx context.Context, key string) error {
	s, err := c.session(ctx)
	if err != nil {
		return outcome("acquire", key, err)
	}
	var rows int
	err = s.conn.QueryRowContext(context.WithoutCancel(ctx),
		"SELECT COUNT(id) FROM "+c.table+" WHERE order_id = ? AND memo = ?", key, c.name).Scan(&rows)
	if err != nil {
		_ = c.fail("acquire", key, err)
		return fmt.Errorf("acquire %s: read the owner: %w: %w", key, impls.ErrFailed, err)
	}
	if rows == 0 {
		return impls.ErrBusy
	}
	return nil
}

// Cleanup deletes the row if it has this client's name, and no other attempt of
// the client holds it.
func (c *reentrantClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	at := claim{key, a}
	return c.finish(ctx, "clean up", at, func(ctx context.Context) error {
		if c.others(at) > 0 {
			return impls.ErrLost
		}
		return c.must(ctx, "clean up", key, "DELETE FROM "+c.table+" WHERE order_id = ? AND memo = ?", key, c.name)
	})
}
