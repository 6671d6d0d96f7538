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
	stepGet    impls.Step = "get"    // the key exists; the next request reads its time
	stepGetset impls.Step = "getset" // that time has passed; the next request replaces it
)

// getset is redis/getset: a key whose value is the time at which the lock ends,
// by the clients' clocks.
//
// Document: a blog's comparison of three ways to build a lock, the pseudo-code
// in its part on Redis.
//
//	acquire  SETNX key end, with end = now + ttl + 1 in seconds; held if the key
//	         did not exist; if it did, and now > GET key, and now > GETSET key end,
//	         held too; otherwise again after a wait, of 10 ms in the document
//	release  if now < GET key then DEL key
//
// Round trips: 1 to acquire, 2 to release; a waiter adds 2 per poll.
// Bound: the TTL, by the clients' clocks, in whole seconds of Unix time as in
// the document (a finer unit would change the meaning of its added second): a
// key is locked for one to two seconds longer than the TTL. Takeover: two
// seconds after the end of the TTL, plus the rest of a poll.
// Guarantee: one holder until the end of the TTL, while all clocks agree and no
// client is delayed between two of its requests.
// Failure: a client whose clock is fast by the TTL or more takes the lock from
// a live holder. A client that is delayed before its GETSET loses, but replaces
// the winner's time by its own older one, and the lock ends early by that
// delay. A late holder reads its successor's time in its release, and deletes
// its successor's key.
//
// A missing key counts as a time long past, as in the document's language.
// Cleanup after an unknown outcome is a release, if this client's record shows
// that the attempt may have written the key; if the SETNX had been rejected, it
// frees another client's lock.
type getset struct{ wholeSeconds }

func (getset) Info() impls.Info {
	return describe(impls.Info{
		ID:       "redis/getset",
		Summary:  "SETNX of the time at which the lock ends, GET and GETSET after that time; DEL before it; polls (every 10ms in the document)",
		Promise:  "one holder until its TTL is over, while all clients' clocks agree, no client is delayed between two requests, and the server does not lose the key (eviction, restart without fsync, failover)",
		Document: "a blog's comparison of three ways to build a lock: the pseudo-code on SETNX and GETSET",
		Fails:    "a late loser's GETSET ends the winner's lock early, and so does a fast clock; a late holder's DEL frees its successor's lock",
		Properties: []impls.Property{impls.DeadlockFree, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.CleansUp, impls.Once},
		Steps:      []impls.Step{stepGet, stepGetset, stepDelete},
		Polls:      true,
		RoundTrips: 3,
		Requests:   []string{"setnx", "get", "getset", "del"},
		Takeover:   func(ttl time.Duration) time.Duration { return ttl + 2*time.Second },
	})
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

// replace takes a key whose time has passed, or returns ErrBusy. A client that
// loses here has replaced the winner's time nevertheless.
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
	return c.claims.Took(a, struct{}{}, err)
}

// free deletes the key, of any owner, unless its time has passed.
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

// get reads the time of a key. A read has no effect, so an unknown outcome becomes
// ErrFailed.
func (c *getsetClient) get(ctx context.Context, doing, key string) (int64, error) {
	locked, cause, err := c.time(ctx, doing, key, "get", key)
	if errors.Is(err, impls.ErrUnknown) {
		err = fmt.Errorf("%s %s: %w: only a read was sent: %w", doing, key, impls.ErrFailed, cause)
	}
	return locked, err
}

// time sends a command whose reply is a key's time; 0, which is long past, if the
// key does not exist. The cause of err is the driver's error.
func (c *getsetClient) time(ctx context.Context, doing, key string, words ...any) (locked int64, cause, err error) {
	err = c.ask(ctx, doing, key, func(rdb *redis.Client) error {
		var text string
		switch text, cause = rdb.Do(ctx, words...).Text(); {
		case errors.Is(cause, redis.Nil):
			cause = nil
		case cause == nil:
			if locked, cause = strconv.ParseInt(text, 10, 64); cause != nil {
				cause = fmt.Errorf("the value of the key is no time, so another program uses it: %w", cause)
			}
		}
		return cause
	})
	return locked, cause, err
}
