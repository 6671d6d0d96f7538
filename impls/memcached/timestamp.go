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
	stepGet    impls.Step = "get"    // the item was there; the next request reads its time
	stepDelete impls.Step = "delete" // that time is over; the next request deletes the item
	stepSet    impls.Step = "set"    // it is deleted; the next request writes a new one
)

// timestamp is memcached/timestamp: an item whose value is the time until which
// it locks, by the clocks of the clients.
//
//	acquire  add key time, which is now + ttl + 1 in seconds, without an expiry;
//	         held if it was not there; if it was, and now > get key, then
//	         delete key, set key time, and held; else again after a wait
//	release  delete key, unless the time that was written is over
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 2 per poll.
// Bound: the TTL, by the clients' clocks, which count whole seconds of Unix
// time, as the document does: an item locks for one to two seconds longer than
// the TTL. Takeover: two seconds after the TTL's end, plus the rest of a poll.
//
// It promises no more than one holder as long as nobody dies and nobody is
// late. It fails once a lock's time is over: all who have read so before the
// first replaced it replace it too, and all hold the lock. It fails for a
// client whose clock is fast, which takes over from a live holder; for a holder
// that was held up between its look at the clock and its delete, which frees
// its successor's lock; and when the server forgets the item.
//
// Cleanup can promise no more than the value: after a doubt it is a release, if
// this client's own record says that the attempt may have written the item. If
// it was refused unseen, that frees the lock of another.
//
// Source: a blog's comparison of three ways to build a lock, the two cures that
// it tries on memcached's lock and the race that it finds in them.
type timestamp struct{ expiring }

func (timestamp) Info() impls.Info {
	return impls.Info{
		ID:       "memcached/timestamp",
		Backend:  "memcached",
		Summary:  "add of the time until which it locks; get, delete and set once that is over; delete if its own time is not",
		Promise:  "one holder while nobody dies or is late to release, all clients' clocks agree, and the server neither evicts or flushes the item nor restarts",
		Document: "a blog's comparison of three ways to build a lock: the time in the value, on memcached",
		Bound:    impls.BoundTTL,
		Fails:    "all who see that a lock's time is over take it, one after another; a holder held up before its delete frees its successor's lock",
		Properties: []impls.Property{impls.DeadlockFree, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.CleansUp, impls.Once},
		Steps: []impls.Step{stepGet, stepDelete, stepSet, stepFree},
		Polls: true,

		Topologies: anywhere(),
		RoundTrips: 2,
		Requests:   []string{"cmd_get", "cmd_set", "cmd_delete"}, // add counts as set
		Takeover:   func(ttl time.Duration) time.Duration { return ttl + 2*time.Second },
	}
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
	err := c.mine.Took(a, until, c.add(ctx, key, strconv.AppendInt(nil, until, 10), never))
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

// replace takes an item whose time is over, or is refused with ErrBusy. It tells
// when it wrote its own.
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
	return sent, c.mine.Took(a, until, c.set(ctx, key, strconv.AppendInt(nil, until, 10), never))
}

// over reads whether the item's time is over; not if it is gone, for then none
// was seen.
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
		return false, fmt.Errorf("acquire %s: %w: the item holds no time, but %q: somebody else uses it", key, impls.ErrFailed, item.Value)
	}
	return c.now() > until, nil
}

// free deletes the item unless its own time is over: then it is another's, or
// will be.
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
