package workloads

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
)

const (
	// grace is how long after the window's end an acquire may still come to
	// its end by itself: calls that are under way then need not be broken off
	// with an unknown outcome.
	grace = 50 * time.Millisecond
	// leavePatience, and the TTL, is how long a client tries to learn what
	// became of an attempt: after that the lease has ended it.
	leavePatience = 3 * time.Second
	// slowestCleanup bounds the growing pause between two clean-ups.
	slowestCleanup = 250 * time.Millisecond
)

// client is one user of locks, run by one goroutine. What clients of a worker
// have in common is in load.
type client struct {
	*load
	id        uint32
	holder    bool // of a takeover: it keeps its lock until it is killed
	lock      impls.Client
	able      abilities
	bound     impls.Bound
	rec       recorder
	steps     *steps
	renewals  renewals
	dialer    *faultnet.Dialer
	wallClock *impls.SkewedClock // the time as its recipe sees it
	wait      impls.WaitPolicy
	guard     *guard // nil: nothing is guarded
	attempts  attempts
	keyRand   *rand.Rand
	holdRand  *rand.Rand
	thinks    *rand.Rand
	kindRand  *rand.Rand // what only some kinds of load draw
	timer     *time.Timer

	want   want    // of the round under way
	grants []grant // of the round under way, the outermost first

	// One context each for all acquires and all releases: a context, and a
	// timer, per call would cost more than the shortest call.
	acquireCtx, releaseCtx context.Context

	// Operations and results live here, and not on the stack, so that handing
	// them to the history costs no allocation.
	op  history.Op
	res history.Result
	err error // why the client had to stop: its calls could not be recorded

	errors callErrors
}

// run works until the load ends. The client's lock and history are closed by
// the worker afterwards.
func (c *client) run() {
	defer func() {
		if c.err != nil {
			// What cannot be recorded must not be done: the lock is left to
			// its bound, and the sealed end of the record says that this
			// client uses it no more.
			c.err = errors.Join(c.err, c.rec.hist.Close())
		}
	}()
	w := c.spec.Scenario.Workload
	if w.Kind == scenario.Takeover {
		c.takeOver()
		return
	}
	if c.pacer != nil {
		for intended := range c.pacer.queue {
			// What is queued when the load ends stays in flight for the book.
			if c.over() {
				continue
			}
			c.round(intended)
			c.pacer.book.done(intended, c.clock.Now())
			if c.err != nil {
				return
			}
		}
		return
	}
	// Clients begin spread over one think, or they would come in step.
	first := w.Think.Sample(c.thinks)
	if first > 0 {
		first = time.Duration(newRand(c.spec.Scenario.Seed, c.id, streamStagger).Int64N(int64(first) + 1))
	}
	if !c.sleepUntil(c.start + int64(first)) {
		return
	}
	// With a limit of the rate each client has its share of it.
	var apart, next int64
	if w.MaxRate > 0 {
		apart = int64(float64(c.spec.Scenario.Clients) / w.MaxRate * float64(time.Second))
	}
	for !c.over() && c.err == nil {
		if apart > 0 {
			next = max(c.clock.Now(), next+apart)
			if !c.sleepUntil(next) || c.over() {
				return
			}
		}
		c.round(0)
		if d := w.Think.Sample(c.thinks); d > 0 && !c.sleepUntil(c.clock.Now()+int64(d)) {
			return
		}
	}
}

// over reports whether the load has ended.
func (c *client) over() bool { return c.clock.Now() >= c.phases.end.Load() }

// sleepUntil waits for a stamp; false means that the load was stopped first.
func (c *client) sleepUntil(stamp int64) bool {
	for {
		left := stamp - c.clock.Now()
		if left <= 0 {
			return true
		}
		c.timer.Reset(time.Duration(left))
		select {
		case <-c.timer.C:
		case <-c.quit:
			return false
		}
	}
}
