package memcached

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/impls"
)

const (
	// stepSwap is between the comparison and the write.
	stepSwap impls.Step = "swap"
	// atOnce is an exptime in the past.
	atOnce = -1
	// conflicts is how often a release is restarted because the value was written
	// between its two steps. Only our own renewal, abandoned and late, can do that
	// without replacing the token.
	conflicts = 3
)

// cas is memcached/cas: an item whose value is the attempt's token, and which
// expires.
//
// Document: the add-based lock of memcached's manual, with compare-and-expire
// instead of a delete, which may hit a successor.
//
//	acquire  add key token ttl+2; again after a wait if it exists
//	extend   gets key; if it has the token, cas key token ttl+2
//	release  gets key; if it has the token, cas key "" -1
//
// Round trips: 1 to acquire, 2 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's clock, which ticks once a second: an item of
// n seconds lives for n-1 to n seconds. The recipe asks for two seconds more
// than the TTL, one for that and one for a late tick. Takeover: up to two
// seconds after the end of the TTL, plus the rest of a poll.
// Guarantee: one holder until the end of the TTL.
// Failure: a holder that continues after its lease (cas numbers restart with
// the server, and are no fencing tokens); a server that loses the item:
// evicted, flushed, restarted, or a tick that is late by more than a second.
type cas struct{ expiring }

func (cas) Info() impls.Info {
	return describe(impls.Info{
		ID:       "memcached/cas",
		Summary:  "add with a random token; release and extend by gets and cas, release with an expiry in the past",
		Promise:  "one holder until its TTL is over, while the server neither evicts or flushes the item nor restarts, and its one-second tick is not a second late",
		Document: "the add-based lock of memcached's manual, with compare-and-expire instead of delete",
		Properties: []impls.Property{impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Blocking, impls.NonBlocking,
			impls.Expiry, impls.ReportsLost, impls.CleansUp, impls.Extends, impls.Once},
		Steps:      []impls.Step{stepSwap},
		RoundTrips: 3,
		Requests:   []string{"cmd_get", "cmd_set"}, // add and cas count as set
	})
}

func (cas) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	d, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &casClient{driver: d, exptime: exptime(cfg.TTL)}, nil
}

type casClient struct {
	*driver
	exptime int32 // seconds, with the spare ones
}

func (c *casClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *casClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	tok := hex.AppendEncode(nil, a[:])
	sent := impls.Monotonic(c.cfg.Clock)
	if err := c.add(ctx, key, tok, c.exptime); err != nil {
		return nil, err
	}
	// No fence: cas numbers restart with the server.
	return impls.NewLease(key, a, 0, sent, impls.Leaser{
		Clock:  c.cfg.Clock,
		TTL:    c.cfg.TTL,
		Extend: func(ctx context.Context) error { return c.swap(ctx, "extend", key, tok, tok, c.exptime) },
		Free:   func(ctx context.Context) error { return c.swap(ctx, "release", key, tok, nil, atOnce) },
	}), nil
}

// Cleanup is a release by the attempt's token. An add still under way on an
// abandoned connection may be executed later; its item ends with its TTL.
func (c *casClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return c.swap(ctx, "clean up", key, []byte(a.String()), nil, atOnce)
}

// swap stores value under key for exptime seconds if token is there and no
// client writes in between.
func (c *casClient) swap(ctx context.Context, doing, key string, token, value []byte, exptime int32) error {
	var err error
	for range conflicts {
		item, gerr := c.get(ctx, doing, key)
		if gerr != nil {
			return gerr
		}
		if !bytes.Equal(item.Value, token) {
			return impls.ErrLost
		}
		c.cfg.Reach(ctx, stepSwap)
		if err := c.begin(ctx, doing, key); err != nil {
			return err
		}
		item.Value, item.Expiration = value, exptime
		serr := c.mc.CompareAndSwap(item)
		if serr == nil {
			return nil
		}
		err = outcome("cas", doing, key, serr)
		if !errors.Is(err, errConflict) {
			return err
		}
	}
	return fmt.Errorf("%d conflicts: %w: %w", conflicts, impls.ErrFailed, err)
}

// Left reads the item's value.
func (c *casClient) Left(ctx context.Context, key string) ([]impls.Entry, error) {
	item, err := c.get(ctx, "list", key)
	switch {
	case errors.Is(err, impls.ErrLost):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return impls.ParseEntries("", string(item.Value)), nil
}
