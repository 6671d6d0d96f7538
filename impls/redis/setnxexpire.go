package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// stepExpire is between the two steps of redis/setnx-expire: the key exists and
// does not expire.
const stepExpire impls.Step = "expire"

// setnxExpire is redis/setnx-expire: a key that is its own value, and gets its
// expiry after it was set.
//
// Document: notes on a Redis lock found in a Java project, its handler of locks
// on bills, without its batches and debugging output.
//
//	acquire  SETNX key key; if the key did not exist, EXPIRE key ttl; otherwise
//	         again after a wait, of 300 ms in the document
//	release  DEL key
//
// Round trips: 2 to acquire, 1 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's clock, in whole seconds: 3 s in the document.
// Takeover: at the end of the TTL, plus the rest of a poll.
// Guarantee: one holder until the end of the TTL, while every holder releases
// in time.
// Failure: a client that dies between SETNX and EXPIRE, or loses the EXPIRE,
// locks the key forever. A late holder deletes its successor's key. Neither the
// value nor the reply to EXPIRE shows the owner.
//
// Cleanup after an unknown outcome deletes the key if this client's record
// shows that the attempt may have set it; if the SETNX had been rejected, it
// frees another client's lock.
type setnxExpire struct{ wholeSeconds }

func (setnxExpire) Info() impls.Info {
	return describe(impls.Info{
		ID:       "redis/setnx-expire",
		Summary:  "SETNX, then EXPIRE (3s in the document); DEL without checking the owner; polls (every 300ms in the document)",
		Promise:  "one holder until its TTL is over, while no client dies between the two steps, no holder is late to release, and the server does not lose the key (eviction, restart without fsync, failover)",
		Document: "notes on a Redis lock found in a Java project: its lock handler",
		Fails:    "a client that dies between SETNX and EXPIRE keeps the key forever; a late holder's DEL frees its successor's lock",
		Properties: []impls.Property{impls.Exclusive, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.CleansUp, impls.Once},
		Steps:      []impls.Step{stepExpire, stepDelete},
		Polls:      true,
		RoundTrips: 3,
		Requests:   []string{"setnx", "expire", "del"},
	})
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
	// As in the document, the reply is ignored: the key may be gone.
	if _, err := c.number(ctx, "acquire", key, "expire", key, int64(c.cfg.TTL/time.Second)); err != nil {
		// The document logs this and continues without the lock; the key stays.
		return nil, ended(ctx, fmt.Errorf("acquire %s: %w: the key is set, and may never expire: %v", key, impls.ErrUnknown, err))
	}
	return c.hold(key, a, sent, func(ctx context.Context) error { return c.del(ctx, "release", key) }), nil
}

// Cleanup deletes the key, of any owner, if the attempt may have set it.
func (c *setnxExpireClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return c.finish(ctx, a, func(ctx context.Context) error { return c.del(ctx, "clean up", key) })
}

// ended adds the error of ctx to err, if ctx has ended.
func ended(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}
