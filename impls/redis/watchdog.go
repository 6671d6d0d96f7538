package redis

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// watchdog is redis/watchdog: the lock of redis/token, renewed in the background
// as long as its holder lives.
//
//	acquire  SET key token NX PX ttl; again after a wait if it was there
//	renew    three times in a TTL: if GET key == token then PEXPIRE key ttl
//	release  end the renewals; if GET key == token then DEL key
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll, and a holder
// 1 per third of a TTL, which the server counts among the others' requests.
// Bound: the session, a lease by the server's clock that the client keeps alive.
// Takeover: at the end of the TTL that runs, plus the rest of a poll.
//
// It promises one holder at a time for as long as that lives and is heard, so
// that the TTL need not be longer than the work. It fails when a holder that was
// stopped or cut off goes on although its lease ended: Lost tells it, but cannot
// stop it, and there is no token to fence with. And it fails where redis/token
// does because the server forgets the key.
//
// Source: the watchdog of Redisson's lock, which renews at a third of its 30 s.
type watchdog struct{ plain }

func (watchdog) Info() impls.Info {
	return impls.Info{
		ID:         "redis/watchdog",
		Backend:    "redis",
		Summary:    "redis/token, renewed in the background at a third of the TTL",
		Promise:    "one holder at a time while it lives and is heard, and the server neither loses the key (eviction, restart without fsync, failover) nor has its clock set",
		Document:   "the watchdog of Redisson's lock",
		Bound:      impls.BoundSession,
		Properties: promised(impls.SignalsLoss),
		Steps:      []impls.Step{impls.StepRenewing},
		Polls:      true,

		Topologies:  anywhere(),
		AvailableOn: []string{replicated},
		RoundTrips:  2,
		Requests:    []string{"set", "eval", "evalsha"},
		Takeover:    atEnd,
	}
}

func (watchdog) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	t, err := openTokens(ctx, cfg, releaseScript, extendScript)
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
	err := c.tokens.Close() // which also ends a renewal under way
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
	h := &watched{client: c, lost: make(chan struct{}), ended: make(chan struct{}), end: sent.Add(c.cfg.TTL)}
	h.Grant = impls.NewGrant(key, a, 0, h.free)
	var ctxRenew context.Context
	ctxRenew, h.stop = context.WithCancel(c.background)
	c.running.Go(func() { h.renew(ctxRenew) })
	return h, nil
}

// watched is a hold that is renewed beside its user.
type watched struct {
	impls.Grant
	client *watchdogs

	lost  chan struct{}
	stop  context.CancelFunc // of the renewals
	ended chan struct{}      // closed when they have ended
	gone  bool               // a renewal was told that the lock is another's; to be read after ended

	mu  sync.Mutex
	end time.Time
}

// Lost is closed when a renewal was told that the lock is no longer ours, or
// when the lease's end passed without a confirmed renewal.
func (h *watched) Lost() <-chan struct{} { return h.lost }

// LeaseEnd is one TTL after the newest request that was confirmed was sent.
func (h *watched) LeaseEnd() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.end
}

func (h *watched) setEnd(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end = t
}

// renewals is how many fit into a TTL; retries is how many tries into the time
// between two of them, where one has failed.
const (
	renewals = 3
	retries  = 10
)

// renew keeps the lease until ctx ends or the hold is lost.
func (h *watched) renew(ctx context.Context) {
	defer close(h.ended)
	c := h.client
	clock, ttl := c.cfg.Clock, c.cfg.TTL
	pause := ttl / renewals
	for clock.Sleep(ctx, pause) == nil {
		c.cfg.Reach(ctx, impls.StepRenewing)
		sent := impls.Monotonic(clock)
		left := h.LeaseEnd().Sub(sent)
		if left <= 0 {
			// The server may hold it still, if what was lost is the answer.
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
			// Ask again soon, but do not miss the end.
			pause = min(ttl/(renewals*retries), max(0, h.LeaseEnd().Sub(impls.Monotonic(clock))))
		}
	}
}

// free ends the renewals, for good, and frees the lock when none is under way
// any more: so none can be carried out after it. (It would change nothing, for
// it compares the token.) If ctx ends before that, nothing was sent, and the
// lease runs out unless the lock is released again.
func (h *watched) free(ctx context.Context) error {
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
