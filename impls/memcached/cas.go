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
	// atOnce is an exptime by which an item is gone when it is stored.
	atOnce = -1
	// conflicts is how often a release is begun anew because the value was
	// written between its two steps. Only a renewal of ours, given up and
	// late, can do that and leave the token in place.
	conflicts = 3
)

// cas is memcached/cas: an item that holds the attempt's token and expires.
//
//	acquire  add key token ttl+2; again after a wait if it was there
//	extend   gets key; if it is the token, cas key token ttl+2
//	release  gets key; if it is the token, cas key "" -1
//
// Round trips: 1 to acquire, 2 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's clock, which ticks once a second: an item of n
// seconds lives between n-1 and n of them. The recipe asks for two more than it
// trusts, one for that and one in case a tick comes late. Takeover: up to two
// seconds after the TTL's end, plus the rest of a poll.
//
// It promises one holder until the TTL is over. It fails when the holder goes
// on after that (cas numbers begin again with the server, and fence nothing),
// and when the server forgets the item: evicted for want of memory, flushed,
// restarted, or its tick late by more than the second in hand.
//
// Source: the add-based lock of memcached's manual, whose delete may hit a
// successor; compare-and-expire does not.
type cas struct{ expiring }

func (cas) Info() impls.Info {
	return impls.Info{
		ID:       "memcached/cas",
		Backend:  "memcached",
		Summary:  "add with a random token; release and extend by gets and cas, release with an expiry in the past",
		Promise:  "one holder until its TTL is over, while the server neither evicts or flushes the item nor restarts, and its one-second tick is not a second late",
		Document: "the add-based lock of memcached's manual, with compare-and-expire instead of delete",
		Bound:    impls.BoundTTL,
		Properties: []impls.Property{impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Blocking, impls.NonBlocking,
			impls.Expiry, impls.ReportsLost, impls.CleansUp, impls.Extends, impls.Once},
		Steps: []impls.Step{stepSwap},
		Polls: true,

		Topologies: anywhere(),
		RoundTrips: 3,
		Requests:   []string{"cmd_get", "cmd_set"}, // add and cas count as set
		Takeover:   atSpare,
	}
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
	exptime int32 // seconds, spare ones included
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
	// No fence: cas numbers begin again when the server does.
	return impls.NewLease(key, a, 0, sent, impls.Leaser{
		Clock:  c.cfg.Clock,
		TTL:    c.cfg.TTL,
		Extend: func(ctx context.Context) error { return c.swap(ctx, "extend", key, tok, tok, c.exptime) },
		Free:   func(ctx context.Context) error { return c.swap(ctx, "release", key, tok, nil, atOnce) },
	}), nil
}

// Cleanup is a release by the attempt's token. An add that is still on its
// way on a connection that was given up may be carried out after it; what it
// leaves ends with its TTL.
func (c *casClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return c.swap(ctx, "clean up", key, []byte(a.String()), nil, atOnce)
}

// swap stores value under key for exptime seconds if token is there, with
// nobody's write in between.
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
	return fmt.Errorf("%d times over: %w: %w", conflicts, impls.ErrFailed, err)
}
