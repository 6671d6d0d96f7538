package memcached

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// The steps of memcached/timestamp, besides stepFree.
const (
	stepGet    impls.Step = "get"    // the item exists; the next request reads its time
	stepDelete impls.Step = "delete" // that time has passed; the next request deletes the item
	stepSet    impls.Step = "set"    // it is deleted; the next request writes a new one
)

// timestamp is memcached/timestamp: an item whose value is the time at which
// the lock ends, by the clients' clocks.
//
// Document: a blog's comparison of three ways to build a lock, the two
// improvements that it tries on memcached's lock and the race that it finds in
// them.
//
//	acquire  add key end, with end = now + ttl + 1 in seconds, without an expiry; held if
//	         it did not exist; if it did, and now > get key, then delete key, set key
//	         end, and held; otherwise again after a wait
//	release  delete key, unless the written time has passed
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 2 per poll.
// Bound: the TTL, by the clients' clocks, in whole seconds of Unix time as in
// the document: an item locks for one to two seconds longer than the TTL.
// Takeover: two seconds after the end of the TTL, plus the rest of a poll.
// Guarantee: one holder while no client dies and no holder is late.
// Failure: after the end of a lock, all clients that read its time before the
// first replaced it replace it too, and all hold the lock. A client whose clock
// is fast takes the lock from a live holder. A holder that is delayed between
// reading the clock and its delete frees its successor's lock. The server may
// lose the item.
//
// Cleanup after an unknown outcome is a release, if this client's record shows
// that the attempt may have written the item; if the add had been rejected, it
// frees another client's lock.
type timestamp struct{ expiring }

func (timestamp) Info() impls.Info {
	return describe(impls.Info{
		ID:       "memcached/timestamp",
		Summary:  "add of the time at which the lock ends; get, delete and set after that time; delete before its own time",
		Promise:  "one holder while no client dies or is late to release, all clients' clocks agree, and the server neither evicts or flushes the item nor restarts",
		Document: "a blog's comparison of three ways to build a lock: the time in the value, on memcached",
		Fails:    "all clients that read an ended lock's time take the lock, one after another; a holder delayed before its delete frees its successor's lock",
		Properties: []impls.Property{impls.DeadlockFree, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.CleansUp, impls.Once},
		Steps:      []impls.Step{stepGet, stepDelete, stepSet, stepFree},
		RoundTrips: 2,
		Requests:   []string{"cmd_get", "cmd_set", "cmd_delete"}, // add counts as set
	})
}

func (timestamp) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	b, err := openBlind(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &timestampClient{b}, nil
}

type timestampClient struct{ *blind }

func (c *timestampClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *timestampClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	sent, until := impls.Monotonic(c.cfg.Clock), c.until()
	err := c.claims.Took(a, until, c.add(ctx, key, strconv.AppendInt(nil, until, 10), never))
	if errors.Is(err, impls.ErrBusy) {
		sent, err = c.replace(ctx, key, a)
	}
	if err != nil {
		return nil, err
	}
	return c.hold(key, a, sent, c.free), nil
}

// never is the exptime of an item that does not expire.
const never = 0

// replace takes an item whose time has passed, or returns ErrBusy. sent is the
// time of its write.
func (c *timestampClient) replace(ctx context.Context, key string, a impls.Attempt) (sent time.Time, err error) {
	c.cfg.Reach(ctx, stepGet)
	over, err := c.over(ctx, key)
	if err != nil {
		return sent, err
	}
	if !over {
		return sent, impls.ErrBusy
	}
	c.cfg.Reach(ctx, stepDelete)
	if err := c.remove(ctx, "acquire", key); err != nil && !errors.Is(err, impls.ErrLost) {
		return sent, err
	}
	c.cfg.Reach(ctx, stepSet)
	sent, until := impls.Monotonic(c.cfg.Clock), c.until()
	return sent, c.claims.Took(a, until, c.set(ctx, key, strconv.AppendInt(nil, until, 10), never))
}

// over reports whether the item's time has passed; false if the item is gone.
func (c *timestampClient) over(ctx context.Context, key string) (bool, error) {
	item, err := c.get(ctx, "acquire", key)
	if errors.Is(err, impls.ErrLost) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	until, err := strconv.ParseInt(string(item.Value), 10, 64)
	if err != nil {
		return false, fmt.Errorf("acquire %s: %w: the value of the item is no time, but %q: another program uses it", key, impls.ErrFailed, item.Value)
	}
	return c.now() > until, nil
}

// free deletes the item unless its own time has passed: then another client has
// it, or will.
func (c *timestampClient) free(ctx context.Context, doing, key string, until int64) error {
	if err := c.begin(ctx, doing, key); err != nil {
		return err
	}
	if c.now() >= until {
		return impls.ErrLost
	}
	c.cfg.Reach(ctx, stepFree)
	return c.remove(ctx, doing, key)
}

// Cleanup is a release, if the attempt may have written the item.
func (c *timestampClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return c.finish(ctx, "clean up", key, a, c.free)
}
