package workloads

import (
	"context"
	"math"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// release frees the newest grant, also one that the client knows to be lost:
// that the server agrees is worth recording. When the answer is not definite,
// or the release could not be sent, the attempt is cleaned up: a Hold is
// released only once.
//
// Until the last grant is released the client holds, and the board says so.
func (c *client) release() {
	if c.catchUp(); c.err != nil {
		return
	}
	last := len(c.grants) - 1
	a, hold := c.grants[last].attempt, c.grants[last].hold
	c.grants = c.grants[:last]
	c.op = history.Op{Kind: history.KindRelease, Flags: c.want.flags, Key: c.want.key, Attempt: a, Fence: hold.Fence()}
	if last == 0 {
		c.err = c.rec.release(&c.op)
	} else {
		c.err = c.rec.begin(&c.op)
	}
	if c.err != nil {
		return
	}
	c.steps.place(PlaceReleasing, c.want.key, &a)
	ctx, cancel := c.releaseCtx, context.CancelFunc(nil)
	if ctx.Err() != nil { // a long stop of the process has used it up
		ctx, cancel = context.WithTimeout(context.Background(), c.callLimit)
		defer cancel()
	}
	err := hold.Release(ctx)
	c.res = history.Result{Outcome: impls.Outcome(history.KindRelease, err)}
	c.errors.add(c.id, c.op.Kind, c.res.Outcome, err, c.rec.end(&c.res))
	if c.res.Outcome != history.Released && c.res.Outcome != history.Lost {
		c.cleanUp(a)
	}
}

// cleanUp asks until it is certain that nothing of the attempt is left, or
// until the lease must have ended it: a session's does not end while the client
// lives and renews it, so that there only the load's end ends the asking. Each
// try is a call of the history.
func (c *client) cleanUp(a history.Attempt) {
	leave := int64(c.spec.Scenario.TTL.D() + leavePatience)
	giveUp := c.clock.Now() + leave
	if c.bound == impls.BoundSession {
		giveUp = math.MaxInt64
	}
	pause := time.Millisecond
	for {
		ctx, cancel := context.WithTimeout(context.Background(), c.callLimit)
		c.op = history.Op{Kind: history.KindCleanup, Flags: c.want.flags, Key: c.want.key, Attempt: a}
		if c.err = c.rec.begin(&c.op); c.err != nil {
			cancel()
			return
		}
		err := c.tidy(ctx, a)
		cancel()
		c.res = history.Result{Outcome: impls.Outcome(history.KindCleanup, err)}
		now := c.rec.end(&c.res)
		c.errors.add(c.id, c.op.Kind, c.res.Outcome, err, now)
		if c.res.Outcome == history.Released || c.res.Outcome == history.Lost {
			return
		}
		// After the load's end no client waits longer than for the lease either.
		if now >= min(giveUp, c.phases.end.Load()+leave) {
			return
		}
		pause = min(max(2*pause, c.wait.Next()), slowestCleanup)
		time.Sleep(pause)
	}
}

// tidy asks the lock to remove what the attempt left.
func (c *client) tidy(ctx context.Context, a history.Attempt) error {
	if c.want.batch {
		return c.able.batcher.CleanupAll(ctx, c.want.names, a)
	}
	return c.lock.Cleanup(ctx, c.spec.Keys[c.want.key], a)
}
