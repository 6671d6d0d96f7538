package memcached

import (
	"context"
	"strconv"

	"github.com/lockbench/lockbench/impls"
)

// addDelete is memcached/add-delete: an item that expires, which one of many
// can add.
//
//	acquire  add key now ttl+2; again after a wait if it was there
//	release  delete key
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's clock, which ticks once a second. The document
// leaves open which expiry to ask for; the two seconds over the TTL are those
// of memcached/cas, so that a client may trust it for the whole TTL. Takeover: up
// to two seconds after the TTL's end, plus the rest of a poll.
//
// It promises one holder until the TTL is over, as long as none is late to
// release. It fails when one is: its delete does not ask whose the item is, and
// frees its successor's lock, for a third to take. It fails too when the server
// forgets the item: evicted, flushed, restarted. The value, the time at which
// it was locked, is nobody's in particular, and nobody reads it.
//
// Cleanup can promise no more than that: after a doubt, of an add or a delete,
// it deletes the item if this client's own record says that the attempt may
// have added it. If the add was refused unseen, that frees the lock of another.
//
// Source: a blog's comparison of three ways to build a lock, the first
// pseudo-code in its part on memcached.
type addDelete struct{ expiring }

func (addDelete) Info() impls.Info {
	return impls.Info{
		ID:       "memcached/add-delete",
		Backend:  "memcached",
		Summary:  "add with an expiry; delete without asking whose it is",
		Promise:  "one holder until its TTL is over, as long as none is late to release, and the server neither evicts or flushes the item nor restarts",
		Document: "a blog's comparison of three ways to build a lock: the first pseudo-code on memcached",
		Bound:    impls.BoundTTL,
		Fails:    "a late holder's delete frees its successor's lock; an evicted item, or a restart, makes a second holder",
		Properties: []impls.Property{impls.Exclusive, impls.DeadlockFree, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.CleansUp, impls.Once},
		Steps: []impls.Step{stepFree},
		Polls: true,

		Topologies: anywhere(),
		RoundTrips: 2,
		Requests:   []string{"cmd_set", "cmd_delete"}, // add counts as set
		Takeover:   atSpare,
	}
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
	if err := c.mine.Took(a, c.until(), err); err != nil {
		return nil, err
	}
	return c.hold(key, a, sent, c.free), nil
}

// free deletes the item. Its time is not looked at.
func (c *addDeleteClient) free(ctx context.Context, doing, key string, _ int64) error {
	c.cfg.Reach(ctx, stepFree)
	return c.remove(ctx, doing, key)
}

// Cleanup deletes the item, whoever's it is, if the attempt may have added it.
func (c *addDeleteClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return c.finish(ctx, "clean up", key, a, c.free)
}
