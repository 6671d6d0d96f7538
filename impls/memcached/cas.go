package memcached

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lockbench/lockbench/impls"
)

const (
	// maxExptime is the longest time to live that memcached takes as such; a
	// larger number is a date, long past.
	maxExptime = 30 * 24 * time.Hour
	// spare is what an item may lose of its time to memcached's coarse clock.
	spare = 2 * time.Second
	// atOnce is an exptime by which an item is gone when it is stored.
	atOnce = -1
	// conflicts is how often a release is begun anew because the value was
	// written between its two steps. Only a renewal of ours, given up and
	// late, can do that and leave the token in place.
	conflicts = 3
)

// cas is memcached/cas: an item that holds the attempt's token and expires.
//
//	acquire  add key token ttl+1; again after a wait if it was there
//	extend   gets key; if it is the token, cas key token ttl+1
//	release  gets key; if it is the token, cas key "" -1
//
// Round trips: 1 to acquire, 2 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's clock, which ticks once a second: an item of n
// seconds lives between n-1 and n of them, so the recipe asks for one more than
// it trusts. Takeover: up to a second after the TTL's end, plus the rest of a
// poll.
//
// It promises one holder until the TTL is over. It fails when the holder goes
// on after that (cas numbers begin again with the server, and fence nothing),
// and when the server forgets the item: evicted for want of memory, flushed,
// restarted, or its tick late by more than the second in hand.
//
// Source: the add-based lock of memcached's manual, whose delete may hit a
// successor; compare-and-expire does not.
type cas struct{}

func (cas) Info() impls.Info {
	return impls.Info{
		ID:       "memcached/cas",
		Backend:  "memcached",
		Summary:  "add with a random token; release and extend by gets and cas, release with an expiry in the past",
		Promise:  "one holder until its TTL is over, while the server neither evicts or flushes the item nor restarts, and its one-second tick is not a second late",
		Document: "the add-based lock of memcached's manual, with compare-and-expire instead of delete",
		Bound:    impls.BoundTTL,
		Polls:    true,

		Topologies: []string{"single"},
		RoundTrips: 3,
		Requests:   []string{"cmd_get", "cmd_set"}, // add and cas count as set
		Takeover:   func(ttl time.Duration) time.Duration { return ttl + spare },
	}
}

func (cas) CheckTTL(ttl time.Duration, _ impls.Limits) error {
	if ttl < time.Second || ttl%time.Second != 0 || ttl+spare > maxExptime {
		return fmt.Errorf("memcached/cas cannot serve a TTL of %s: memcached expires items by whole seconds; choose from 1s to %s", ttl, maxExptime-spare)
	}
	return nil
}

// Prepare has nothing to do: keys come and go.
func (cas) Prepare(context.Context, impls.Config, []string) error { return nil }

func (cas) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	if err := (cas{}).CheckTTL(cfg.TTL, impls.Limits{}); err != nil {
		return nil, err
	}
	d, err := open(cfg)
	if err != nil {
		return nil, err
	}
	if err := d.begin(ctx, "connect to", cfg.Addresses[0]); err != nil {
		return nil, err
	}
	if err := d.mc.Ping(); err != nil {
		return nil, fmt.Errorf("connect to memcached at %s: %w", cfg.Addresses[0], err)
	}
	return &casClient{driver: d, cfg: cfg, exptime: int32((cfg.TTL + spare) / time.Second)}, nil
}

type casClient struct {
	*driver
	cfg     impls.Config
	exptime int32 // seconds, spare ones included
}

func (c *casClient) Close() error { return c.close() }

func (c *casClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *casClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	if err := c.begin(ctx, "acquire", key); err != nil {
		return nil, err
	}
	tok := hex.AppendEncode(nil, a[:])
	sent := c.cfg.Clock.Now()
	err := c.mc.Add(&memcache.Item{Key: key, Value: tok, Expiration: c.exptime})
	switch {
	case err == nil:
		// No fence: cas numbers begin again when the server does.
		return impls.NewLease(key, a, 0, sent, impls.Leaser{
			Clock:  c.cfg.Clock,
			TTL:    c.cfg.TTL,
			Extend: func(ctx context.Context) error { return c.swap(ctx, "extend", key, tok, tok, c.exptime) },
			Free:   func(ctx context.Context) error { return c.swap(ctx, "release", key, tok, nil, atOnce) },
		}), nil
	case err == memcache.ErrNotStored:
		return nil, impls.ErrBusy // the table's answer, without its words: this is no rare path
	default:
		return nil, outcome("add", "acquire", key, err)
	}
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
		if err := c.begin(ctx, doing, key); err != nil {
			return err
		}
		item, gerr := c.mc.Get(key) // sends gets
		if gerr != nil {
			return outcome("gets", doing, key, gerr)
		}
		if !bytes.Equal(item.Value, token) {
			return impls.ErrLost
		}
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
