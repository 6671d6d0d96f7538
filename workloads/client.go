package workloads

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
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
	id       uint32
	lock     impls.Client
	rec      recorder
	wait     impls.WaitPolicy
	guard    *guard // nil: nothing is guarded
	attempts attempts
	keyRand  *rand.Rand
	holdRand *rand.Rand
	thinks   *rand.Rand
	timer    *time.Timer

	// One context each for all acquires and all releases: a context, and a
	// timer, per call would cost more than the shortest call.
	acquireCtx, releaseCtx context.Context

	// Operations and results live here, and not on the stack, so that handing
	// them to the history costs no allocation.
	op  history.Op
	res history.Result
	err error // why the client had to stop: its calls could not be recorded
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
	for !c.over() && c.err == nil {
		c.round(0)
		if d := w.Think.Sample(c.thinks); d > 0 && !c.sleepUntil(c.clock.Now()+int64(d)) {
			return
		}
	}
}

// over reports whether the load has ended.
func (c *client) over() bool { return c.clock.Now() >= c.phases.end.Load() }

// round is one acquire and all that follows from it.
func (c *client) round(intended int64) {
	key := c.keys.next(c.id, c.keyRand)
	a := c.attempts.next()
	hold, at := c.acquire(key, a, intended)
	if hold != nil {
		c.work(key, a, hold, at)
		c.rec.slot.idle()
		return
	}
	if c.err == nil && c.res.Outcome == history.Unknown {
		c.cleanUp(key, a)
	}
	c.rec.slot.idle()
	// An acquire that fails at once must not be asked again at once: a dead
	// server would turn the client into a busy loop.
	c.sleepUntil(c.clock.Now() + int64(max(c.wait.Next(), time.Millisecond)))
}

// acquire asks for the lock and records what it came to, in c.res too; hold is
// nil unless that is Held. at is the stamp of the return.
func (c *client) acquire(key uint32, a history.Attempt, intended int64) (hold impls.Hold, at int64) {
	ctx := c.acquireCtx
	if limit := c.spec.Scenario.Workload.AcquireLimit.D(); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	c.op = history.Op{Kind: history.KindAcquire, Key: key, Attempt: a, Intended: intended}
	if c.err = c.rec.acquire(&c.op); c.err != nil {
		return nil, 0
	}
	hold, err := c.lock.Acquire(ctx, c.spec.Keys[key], a)
	c.res = history.Result{Outcome: impls.Outcome(history.KindAcquire, err)}
	switch {
	case err != nil:
		hold = nil
	case hold == nil:
		c.res.Outcome = history.Unknown // a recipe that says neither yes nor no
	default:
		c.res.Fence = hold.Fence()
		if end := hold.LeaseEnd(); !end.IsZero() {
			c.res.LeaseEnd = c.clock.At(end)
		}
	}
	return hold, c.rec.acquired(&c.res)
}

// work is the critical section, from the stamp of the grant on, and the
// release.
func (c *client) work(key uint32, a history.Attempt, hold impls.Hold, granted int64) {
	s := section{client: c, key: key, attempt: a, hold: hold, lost: hold.Lost()}
	if c.guard != nil {
		s.read()
	}
	if d := c.spec.Scenario.Workload.Hold.Sample(c.holdRand); d > 0 {
		s.wait(granted + int64(d))
	} else {
		s.observe()
	}
	if c.guard != nil {
		s.write()
	}
	if c.err != nil {
		return // nothing more can be recorded, so nothing more is done
	}
	c.release(key, a, hold)
}

// release frees the lock, also one that the client knows to be lost: that the
// server agrees is worth recording. When the answer is not definite, or the
// release could not be sent, the attempt is cleaned up: a Hold is released
// only once.
func (c *client) release(key uint32, a history.Attempt, hold impls.Hold) {
	c.op = history.Op{Kind: history.KindRelease, Key: key, Attempt: a, Fence: hold.Fence()}
	if c.err = c.rec.release(&c.op); c.err != nil {
		return
	}
	ctx, cancel := c.releaseCtx, context.CancelFunc(nil)
	if ctx.Err() != nil { // a long stop of the process has used it up
		ctx, cancel = context.WithTimeout(context.Background(), c.callLimit)
		defer cancel()
	}
	err := hold.Release(ctx)
	c.res = history.Result{Outcome: impls.Outcome(history.KindRelease, err)}
	c.rec.end(&c.res)
	if c.res.Outcome != history.Released && c.res.Outcome != history.Lost {
		c.cleanUp(key, a)
	}
}

// cleanUp asks until it is certain that nothing of the attempt is left, or
// until the lease must have ended it. Each try is a call of the history.
func (c *client) cleanUp(key uint32, a history.Attempt) {
	giveUp := c.clock.Now() + int64(c.spec.Scenario.TTL.D()+leavePatience)
	pause := time.Millisecond
	for {
		ctx, cancel := context.WithTimeout(context.Background(), c.callLimit)
		c.op = history.Op{Kind: history.KindCleanup, Key: key, Attempt: a}
		if c.err = c.rec.begin(&c.op); c.err != nil {
			cancel()
			return
		}
		err := c.lock.Cleanup(ctx, c.spec.Keys[key], a)
		cancel()
		c.res = history.Result{Outcome: impls.Outcome(history.KindCleanup, err)}
		now := c.rec.end(&c.res)
		if c.res.Outcome == history.Released || c.res.Outcome == history.Lost {
			return
		}
		// After the load's end nobody waits longer than for the lease either.
		if now >= min(giveUp, c.phases.end.Load()+int64(c.spec.Scenario.TTL.D()+leavePatience)) {
			return
		}
		pause = min(max(2*pause, c.wait.Next()), slowestCleanup)
		time.Sleep(pause)
	}
}

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
