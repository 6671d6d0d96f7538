package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
)

// The steps of redis/getset, besides stepDelete.
const (
	stepGet    impls.Step = "get"    // the key was there; the next request reads its time
	stepGetset impls.Step = "getset" // that time is over; the next request replaces it
)

// getset is redis/getset: a key whose value is the time until which it locks,
// by the clocks of the clients.
//
//	acquire  SETNX key time, which is now + ttl + 1 in seconds; held if it was
//	         not there; if it was, and now > GET key, and now > GETSET key time,
//	         held too; else again after a wait, of 10 ms in the document
//	release  if now < GET key then DEL key
//
// Round trips: 1 to acquire, 2 to release; a waiter adds 2 per poll.
// Bound: the TTL, by the clients' clocks. They count whole seconds of Unix time,
// as the document does, since finer ones would make of its added second a
// different lock: a key locks for one to two seconds longer than the TTL.
// Takeover: two seconds after the TTL's end, plus the rest of a poll.
//
// It promises one holder until the TTL is over, as long as all clocks agree and
// no client is late between two of its requests. It fails when a client's clock
// is fast by the TTL and more, for it takes over from a live holder; when one
// was held up before its GETSET, which loses and yet replaces the winner's time
// by its own, older by as long as it was held up: the key passes on that much
// early; and when a holder is late to release, for what it reads is then its
// successor's time, and it deletes its successor's key, for a third to take.
//
// A key that is not there when it is read counts as a time long past, as it
// does in the document's language. Cleanup can promise no more than the value:
// after a doubt it is a release, if this client's own record says that the
// attempt may have written the key. If it was refused unseen, that frees the
// lock of another.
//
// Source: a blog's comparison of three ways to build a lock, the pseudo-code in
// its part on Redis.
type getset struct{ wholeSeconds }

func (getset) Info() impls.Info {
	return impls.Info{
		ID:       "redis/getset",
		Backend:  "redis",
		Summary:  "SETNX of the time until which it locks, GET and GETSET once that is over; DEL if it is not; polls (every 10ms in the document)",
		Promise:  "one holder until its TTL is over, while all clients' clocks agree, none is held up between two requests, and the server does not lose the key (eviction, restart without fsync, failover)",
		Document: "a blog's comparison of three ways to build a lock: the pseudo-code on SETNX and GETSET",
		Bound:    impls.BoundTTL,
		Fails:    "a late loser's GETSET ends the winner's lock early, and so does a fast clock; a late holder's DEL frees its successor's lock",
		Properties: []impls.Property{impls.DeadlockFree, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.CleansUp, impls.Once},
		Steps: []impls.Step{stepGet, stepGetset, stepDelete},
		Polls: true,

		Topologies:  anywhere(),
		AvailableOn: []string{replicated},
		RoundTrips:  3,
		Requests:    []string{"setnx", "get", "getset", "del"},
		Takeover:    func(ttl time.Duration) time.Duration { return ttl + 2*time.Second },
	}
}

func (getset) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	b, err := openBlind(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &getsetClient{b}, nil
}

type getsetClient struct{ *blind }

func (c *getsetClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *getsetClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	sent := impls.Monotonic(c.cfg.Clock)
	until := c.now() + int64(c.cfg.TTL/time.Second) + 1
	err := c.setnx(ctx, key, a, until)
	if errors.Is(err, impls.ErrBusy) {
		err = c.replace(ctx, key, a, until)
	}
	if err != nil {
		return nil, err
	}
	return c.hold(key, a, sent, func(ctx context.Context) error { return c.free(ctx, "release", key) }), nil
}

// replace takes a key whose time is over, or is refused with ErrBusy. If
// another was faster it has replaced the other's time all the same.
func (c *getsetClient) replace(ctx context.Context, key string, a impls.Attempt, until int64) error {
	c.cfg.Reach(ctx, stepGet)
	now := c.now()
	locked, err := c.get(ctx, "acquire", key)
	if err != nil {
		return err
	}
	if now <= locked {
		return impls.ErrBusy
	}
	c.cfg.Reach(ctx, stepGetset)
	now = c.now()
	locked, _, err = c.time(ctx, "acquire", key, "getset", key, until)
	if err == nil && now <= locked {
		err = impls.ErrBusy
	}
	return c.mine.Took(a, struct{}{}, err)
}

// free deletes the key unless its time, whoever's it is, is over.
func (c *getsetClient) free(ctx context.Context, doing, key string) error {
	now := c.now()
	locked, err := c.get(ctx, doing, key)
	if err != nil {
		return err
	}
	if now >= locked {
		return impls.ErrLost
	}
	return c.del(ctx, doing, key)
}

// Cleanup is a release, if the attempt may have written the key.
func (c *getsetClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return c.finish(ctx, a, func(ctx context.Context) error { return c.free(ctx, "clean up", key) })
}

func (c *getsetClient) now() int64 { return c.cfg.Clock.Now().Unix() }

// get reads the time of a key. It only reads, so that a call which it fails has
// had no effect by it.
func (c *getsetClient) get(ctx context.Context, doing, key string) (int64, error) {
	locked, cause, err := c.time(ctx, doing, key, "get", key)
	if errors.Is(err, impls.ErrUnknown) {
		err = fmt.Errorf("%s %s: %w: it only read: %w", doing, key, impls.ErrFailed, cause)
	}
	return locked, err
}

// time sends a command that is answered by a key's time; 0, which is long past,
// if there was no key. The cause of err is the driver's own.
func (c *getsetClient) time(ctx context.Context, doing, key string, words ...any) (locked int64, cause, err error) {
	err = c.ask(ctx, doing, key, func(rdb *redis.Client) error {
		var text string
		switch text, cause = rdb.Do(ctx, words...).Text(); {
		case errors.Is(cause, redis.Nil):
			cause = nil
		case cause == nil:
			if locked, cause = strconv.ParseInt(text, 10, 64); cause != nil {
				cause = fmt.Errorf("the key holds no time, so somebody else uses it: %w", cause)
			}
		}
		return cause
	})
	return locked, cause, err
}
