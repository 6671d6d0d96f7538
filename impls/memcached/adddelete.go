package memcached

import (
	"context"
	"strconv"

	"github.com/lockbench/lockbench/impls"
)

// addDelete is memcached/add-delete: an item that expires, and that one client
// can add.
//
// Document: a blog's comparison of three ways to build a lock, the first
// pseudo-code in its part on memcached.
//
//	acquire  add key now ttl+2; again after a wait if it exists
//	release  delete key
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's clock, which ticks once a second. The
// document does not specify the expiry; the two seconds over the TTL are those
// of memcached/cas, so that a client may rely on the whole TTL. Takeover: up to
// two seconds after the end of the TTL, plus the rest of a poll.
// Guarantee: one holder until the end of the TTL, while every holder releases
// in time.
// Failure: a late holder's delete does not check the owner, and frees its
// successor's lock; a server that loses the item: evicted, flushed, restarted.
// The value, the time of the lock, does not identify the owner, and no client
// reads it.
//
// Cleanup after an unknown add or delete deletes the item if this client's
// record shows that the attempt may have added it; if the add had been
// rejected, it frees another client's lock.
type addDelete struct{ expiring }

func (addDelete) Info() impls.Info {
	return describe(impls.Info{
		ID:       "memcached/add-delete",
		Summary:  "add with an expiry; delete without checking the owner",
		Promise:  "one holder until its TTL is over, while no holder is late to release, and the server neither evicts or flushes the item nor restarts",
		Document: "a blog's comparison of three ways to build a lock: the first pseudo-code on memcached",
		Fails:    "a late holder's delete frees its successor's lock; an evicted item, or a restart, makes a second holder",
		Properties: []impls.Property{impls.Exclusive, impls.DeadlockFree, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.CleansUp, impls.Once},
		Steps:      []impls.Step{stepFree},
		RoundTrips: 2,
		Requests:   []string{"cmd_set", "cmd_delete"}, // add counts as set
	})
}

func (addDelete) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	b, err := openBlind(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &addDeleteClient{b}, nil
}

type addDeleteClient struct{ *blind }

func (c *addDeleteClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *addDeleteClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	sent := impls.Monotonic(c.cfg.Clock)
	err := c.add(ctx, key, strconv.AppendInt(nil, c.now(), 10), exptime(c.cfg.TTL))
	if err := c.claims.Took(a, c.until(), err); err != nil {
		return nil, err
	}
	return c.hold(key, a, sent, c.free), nil
}

// free deletes the item without reading it.
func (c *addDeleteClient) free(ctx context.Context, doing, key string, _ int64) error {
	c.cfg.Reach(ctx, stepFree)
	return c.remove(ctx, doing, key)
}

// Cleanup deletes the item, of any owner, if the attempt may have added it.
func (c *addDeleteClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return c.finish(ctx, "clean up", key, a, c.free)
}
