package redis

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// watchdog is redis/watchdog: the lock of redis/token, renewed in the background
// while its holder is alive.
//
// Document: the watchdog of Redisson's lock, which renews at a third of its 30 s.
//
//	acquire  SET key token NX PX ttl; again after a wait if the key exists
//	renew    three times per TTL: if GET key == token then PEXPIRE key ttl
//	release  end the renewals; if GET key == token then DEL key
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll, and a holder
// 1 per third of a TTL, which the server counts among the other requests.
// Bound: the session, a lease by the server's clock that the client renews.
// Takeover: at the end of the current TTL, plus the rest of a poll.
// Guarantee: one holder at a time while the holder is alive and connected, so that
// the TTL need not be longer than the work.
// Failure: a holder that was stopped or disconnected continues after the end of its
// lease: Lost signals it, but cannot stop it, and there is no fencing token. And
// the server may lose the key, as with redis/token.
type watchdog struct{ plain }

func (watchdog) Info() impls.Info {
	return describe(impls.Info{
		ID:         "redis/watchdog",
		Summary:    "redis/token, renewed in the background at a third of the TTL",
		Promise:    "one holder at a time while it is alive and connected, and the server neither loses the key (eviction, restart without fsync, failover) nor has its clock changed",
		Document:   "the watchdog of Redisson's lock",
		Bound:      impls.BoundSession,
		Properties: promised(impls.SignalsLoss),
		Steps:      []impls.Step{impls.StepRenewing},
		Polls:      true,
		RoundTrips: 2,
		Requests:   []string{"set", "eval", "evalsha"},
	})
}

func (watchdog) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	t, err := openTokens(ctx, cfg, scripts{release: releaseScript, extend: extendScript})
	if err != nil {
		return nil, err
	}
	c := &watchdogs{tokens: t}
	c.background, c.stop = context.WithCancel(context.Background())
	return c, nil
}

type watchdogs struct {
	*tokens

	background context.Context
	stop       context.CancelFunc
	running    sync.WaitGroup
}

// Close ends the renewals and the connections.
func (c *watchdogs) Close() error {
	c.stop()
	err := c.tokens.Close() // ends a renewal under way
	c.running.Wait()
	return err
}

func (c *watchdogs) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *watchdogs) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	sent, err := c.set(ctx, key, a)
	if err != nil {
		return nil, err
	}
	h := &renewedHold{client: c, lost: make(chan struct{}), ended: make(chan struct{}), end: sent.Add(c.cfg.TTL)}
	h.Grant = impls.NewGrant(key, a, 0, h.free)
	var ctxRenew context.Context
	ctxRenew, h.stop = context.WithCancel(c.background)
	c.running.Go(func() { h.renew(ctxRenew) })
	return h, nil
}

// renewedHold is a hold that is renewed in the background.
type renewedHold struct {
	impls.Grant
	client *watchdogs

	lost  chan struct{}
	stop  context.CancelFunc // of the renewals
	ended chan struct{}      // closed when they have ended
	gone  bool               // a renewal found the lock lost; read it only after ended

	mu  sync.Mutex
	end time.Time
}

// Lost is closed when a renewal found the lock lost, or when the lease ended
// without a confirmed renewal.
func (h *renewedHold) Lost() <-chan struct{} { return h.lost }

// LeaseEnd is one TTL after the newest confirmed request was sent.
func (h *renewedHold) LeaseEnd() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.end
}

func (h *renewedHold) setEnd(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end = t
}

// renewals is how many of them fit into a TTL; retries is how many tries fit into
// the time between two renewals after a failed one.
const (
	renewals = 3
	retries  = 10
)

// renew renews the lease until ctx ends or the hold is lost.
func (h *renewedHold) renew(ctx context.Context) {
	defer close(h.ended)
	c := h.client
	clock, ttl := c.cfg.Clock, c.cfg.TTL
	pause := ttl / renewals
	for clock.Sleep(ctx, pause) == nil {
		c.cfg.Reach(ctx, impls.StepRenewing)
		sent := impls.Monotonic(clock)
		left := h.LeaseEnd().Sub(sent)
		if left <= 0 {
			// The server may still have the lock, if only the answer was lost.
			close(h.lost)
			return
		}
		once, cancel := context.WithTimeout(ctx, min(ttl/renewals, left))
		err := c.compare(once, "renew", c.extend, []string{h.Key()}, h.Attempt().String(), ttl.Milliseconds())
		cancel()
		c.cfg.Renewed(h.Key(), h.Attempt(), sent, err)
		switch {
		case err == nil:
			h.setEnd(sent.Add(ttl))
			pause = max(0, ttl/renewals-impls.Monotonic(clock).Sub(sent))
		case impls.Definite(err):
			h.gone = true
			close(h.lost)
			return
		default:
			// Retry soon, but not after the lease's end.
			pause = min(ttl/(renewals*retries), max(0, h.LeaseEnd().Sub(impls.Monotonic(clock))))
		}
	}
}

// free ends the renewals for good, and releases the lock when none is under
// way, so that none is executed after the release. (It would have no effect,
// since it compares the token.) If ctx ends before that, nothing was sent, and
// the lease runs out unless the lock is released again.
func (h *renewedHold) free(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		h.stop()
		select {
		case <-h.ended:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("release %s: %w", h.Key(), impls.NotSent(err))
	case h.gone:
		return impls.ErrLost
	default:
		return h.client.compare(ctx, "release", h.client.release, []string{h.Key()}, h.Attempt().String())
	}
}
