package reference

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// Recipes lists the controls: the right lock, then the broken ones.
func Recipes() []impls.Recipe {
	list := []impls.Recipe{recipe{}}
	for _, b := range brokenOnes() {
		list = append(list, recipe{b})
	}
	return list
}

// recipe is a control: reference/mutex, or one with a single defect.
//
//	acquire  one request: granted or busy; again after a wait if busy
//	extend   one request: extended, or lost
//	release  one request: freed, or lost
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's monotonic clock. Takeover: at the end of the
// TTL, plus the rest of a poll.
// Guarantee: one holder until the end of the TTL, and tokens that grow.
// Failure: only that of every lease: a holder that continues after its end.
type recipe struct{ broken }

func (r recipe) Info() impls.Info {
	info := impls.Info{
		ID:         "reference/mutex",
		Backend:    "reference",
		Summary:    "one mutex-guarded table in the controller, leases by its monotonic clock, over a unix socket",
		Promise:    "one holder at a time, until its release or the end of its lease; tokens grow with every grant",
		Document:   "lockbench's own control: it must never be accused",
		Bound:      impls.BoundTTL,
		Fencing:    true,
		Polls:      true,
		Topologies: []string{"single"},
		RoundTrips: 2,
		Requests:   []string{"acquire", "release", "extend", "cleanup"},
		Takeover:   func(ttl time.Duration) time.Duration { return ttl },
		Properties: []impls.Property{impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Blocking, impls.NonBlocking,
			impls.Expiry, impls.ReportsLost, impls.CleansUp, impls.Extends, impls.Once},
	}
	if r.defect != sound {
		info.ID, info.Broken, info.Fails = r.id, true, r.wrong
		info.Summary = "reference/mutex, but " + r.wrong
		info.Promise = "the same as reference/mutex, broken on purpose"
		info.Document = "lockbench's own control: it must always be detected"
	}
	return info
}

// CheckTTL accepts every positive TTL: the server's clock counts nanoseconds.
func (recipe) CheckTTL(ttl time.Duration, _ impls.Limits) error {
	if ttl <= 0 {
		return fmt.Errorf("TTL %v: the reference lock needs a TTL above zero", ttl)
	}
	return nil
}

// Prepare does nothing: the server creates a key at its first use.
func (recipe) Prepare(context.Context, impls.Config, []string) error { return nil }

func (r recipe) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	if len(cfg.Addresses) != 1 {
		return nil, fmt.Errorf("open a reference client: want the path of one socket, got %d addresses", len(cfg.Addresses))
	}
	c := &client{cfg: cfg, defect: r.defect}
	if _, err := rand.Read(c.wire.id[:]); err != nil {
		return nil, fmt.Errorf("draw the client's id: %w", err)
	}
	c.wire.dial, c.wire.path, c.wire.timeout = cfg.Dial, cfg.Addresses[0], cfg.Timeout
	c.life, c.end = context.WithCancel(context.Background())
	if err := c.wire.connect(ctx); err != nil {
		c.end()
		return nil, fmt.Errorf("open a reference client: %w", err)
	}
	return c, nil
}

type client struct {
	cfg    impls.Config
	defect defect
	wire   wire
	life   context.Context // until Close
	end    context.CancelFunc
	floods sync.WaitGroup
}

func (c *client) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	start := impls.Monotonic(c.cfg.Clock)
	st, fence, err := c.wire.call(ctx, &frame{op: opAcquire, defect: c.defect, id: a, n: int64(c.cfg.TTL), key: key})
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", key, err)
	}
	if st == statusBusy {
		return nil, impls.ErrBusy
	}
	stop := func() {}
	if c.defect == endlessRequests {
		stop = c.flood(key)
	}
	return impls.NewLease(key, a, fence, start, impls.Leaser{
		Clock: c.cfg.Clock,
		TTL:   c.cfg.TTL,
		Extend: func(ctx context.Context) error {
			return c.ask(ctx, &frame{op: opExtend, defect: c.defect, id: a, n: int64(c.cfg.TTL), key: key})
		},
		Free: func(ctx context.Context) error {
			stop()
			return c.ask(ctx, &frame{op: opRelease, defect: c.defect, id: a, key: key})
		},
	}), nil
}

func (c *client) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *client) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return c.ask(ctx, &frame{op: opCleanup, id: a, key: key})
}

func (c *client) Close() error {
	c.end()
	c.floods.Wait()
	return c.wire.close()
}

// flood sends requests that change nothing until stop or an error, over a connection
// of its own.
func (c *client) flood(key string) (stop func()) {
	ctx, stop := context.WithCancel(c.life)
	w := wire{dial: c.wire.dial, path: c.wire.path, timeout: c.wire.timeout}
	_, _ = rand.Read(w.id[:]) // it never fails
	c.floods.Go(func() {
		for ctx.Err() == nil {
			if _, _, err := w.call(ctx, &frame{op: opExtend, id: w.id, key: key}); err != nil {
				break
			}
		}
		_ = w.close()
	})
	return stop
}

// ask sends f: an extension, release or clean-up.
func (c *client) ask(ctx context.Context, f *frame) error {
	st, _, err := c.wire.call(ctx, f)
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: %w", f.op, f.key, err)
	case st == statusGone:
		return impls.ErrLost
	default:
		return nil
	}
}
