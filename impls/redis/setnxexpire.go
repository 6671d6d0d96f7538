package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// stepExpire is between the two steps of redis/setnx-expire: the key is there
// and does not expire.
const stepExpire impls.Step = "expire"

// setnxExpire is redis/setnx-expire: a key that is its own value, and is told
// to expire once it is there.
//
//	acquire  SETNX key key; if it was not there, EXPIRE key ttl; else again
//	         after a wait, of 300 ms in the document
//	release  DEL key
//
// Round trips: 2 to acquire, 1 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's clock, in whole seconds: 3 s in the document.
// Takeover: at the TTL's end, plus the rest of a poll.
//
// It promises one holder until the TTL is over, as long as none is late to
// release. It fails when a client dies between SETNX and EXPIRE, or its EXPIRE
// is lost: then the key is locked for ever. A holder that is late deletes its
// successor's key, for a third to take. Neither the value nor the reply to
// EXPIRE tells whose the key is.
//
// Cleanup can promise no more than the value: after a doubt it deletes the key
// if this client's own record says that the attempt may have set it. If the
// SETNX was refused unseen, that frees the lock of another.
//
// Source: notes on a distributed lock found in a project, its Java handler of
// locks on bills, without its batches and its debugging output.
type setnxExpire struct{ wholeSeconds }

func (setnxExpire) Info() impls.Info {
	return impls.Info{
		ID:       "redis/setnx-expire",
		Backend:  "redis",
		Summary:  "SETNX, then EXPIRE (3s in the document); DEL without asking whose it is; polls (every 300ms in the document)",
		Promise:  "one holder until its TTL is over, as long as no client dies between its two steps, no holder is late to release, and the server does not lose the key (eviction, restart without fsync, failover)",
		Document: "notes on a Redis lock found in a Java project: its lock handler",
		Bound:    impls.BoundTTL,
		Fails:    "a client that dies between SETNX and EXPIRE keeps the key for ever; a late holder's DEL frees its successor's lock",
		Properties: []impls.Property{impls.Exclusive, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.CleansUp, impls.Once},
		Steps: []impls.Step{stepExpire, stepDelete},
		Polls: true,

		Topologies:  anywhere(),
		AvailableOn: []string{replicated},
		RoundTrips:  3,
		Requests:    []string{"setnx", "expire", "del"},
		Takeover:    atEnd,
	}
}

func (setnxExpire) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	b, err := openBlind(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &setnxExpireClient{b}, nil
}

type setnxExpireClient struct{ *blind }

func (c *setnxExpireClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *setnxExpireClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	if err := c.setnx(ctx, key, a, key); err != nil {
		return nil, err
	}
	c.cfg.Reach(ctx, stepExpire)
	sent := impls.Monotonic(c.cfg.Clock)
	// Whether the key was still there is not asked.
	if _, err := c.number(ctx, "acquire", key, "expire", key, int64(c.cfg.TTL/time.Second)); err != nil {
		// The document logs this and goes without the lock; the key stays.
		return nil, ended(ctx, fmt.Errorf("acquire %s: %w: it is set, and perhaps for ever: %v", key, impls.ErrUnknown, err))
	}
	return c.hold(key, a, sent, func(ctx context.Context) error { return c.del(ctx, "release", key) }), nil
}

// Cleanup deletes the key, whoever's it is, if the attempt may have set it.
func (c *setnxExpireClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return c.finish(ctx, a, func(ctx context.Context) error { return c.del(ctx, "clean up", key) })
}

// ended adds to err that ctx has ended, if it has: what a request came to may
// not tell.
func ended(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}
