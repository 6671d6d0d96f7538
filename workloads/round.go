package workloads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// want is what the client asks for in one round.
type want struct {
	kind     history.Kind  // KindAcquire or KindTry
	flags    history.Flags // of every call of the round
	key      uint32        // the first one of a batch
	batch    bool
	keys     []uint32 // of a batch, the first one included
	names    []string // of keys
	intended int64
}

// grant is one acquire that was granted.
type grant struct {
	attempt history.Attempt
	hold    impls.Hold
	lost    <-chan struct{}
}

// draw decides what the next round asks for.
func (c *client) draw(intended int64) {
	l := &c.spec.Scenario.Workload
	w := &c.want
	w.kind, w.flags, w.intended = history.KindAcquire, 0, intended
	switch l.Kind {
	case scenario.Batch:
		w.batch = true
		w.keys = c.keys.distinct(w.keys, l.Batch, c.keyRand)
		w.names = w.names[:0]
		for _, k := range w.keys {
			w.names = append(w.names, c.spec.Keys[k])
		}
		w.key = w.keys[0]
		return
	case scenario.TryStorm:
		w.kind = history.KindTry
	case scenario.ReadWrite:
		if c.kindRand.Float64() < l.Readers {
			w.flags = history.FlagShared
		}
	}
	w.key = c.keys.next(c.id, c.keyRand)
}

// round is one acquire and all that follows from it; granted says that it got
// the lock.
func (c *client) round(intended int64) (granted bool) {
	c.draw(intended)
	at, granted := c.acquire(false)
	if granted {
		for n := 1; n < c.spec.Scenario.Workload.Depth && c.err == nil; n++ {
			again, ok := c.acquire(true)
			if !ok {
				break // it holds all the same, and goes on with what it has
			}
			at = again
		}
		c.work(at)
	}
	c.rec.slot.idle()
	// An acquire that fails at once must not be asked again at once: a dead
	// server would turn the client into a busy loop. Who was answered that the
	// lock is held, or gave up waiting, comes again after its think.
	if !granted && c.res.Outcome != history.Busy && c.spec.Scenario.Workload.Kind != scenario.Churn {
		c.sleepUntil(c.clock.Now() + int64(max(c.wait.Next(), time.Millisecond)))
	}
	return granted
}

// acquire asks for the lock, or again for one that the client holds, and
// records what it came to, in c.res too. A grant is added to c.grants; at is
// the stamp of the return. Of an attempt whose outcome is not certain nothing
// is left when it returns, or its bound has ended it.
func (c *client) acquire(again bool) (at int64, granted bool) {
	a := c.attempts.next()
	ctx, cancel := c.limited(again)
	defer cancel()
	for _, k := range c.want.keys[min(1, len(c.want.keys)):] {
		c.op = history.Op{Kind: history.KindAlso, Key: k, Attempt: a}
		if c.err = c.rec.note(&c.op); c.err != nil {
			return 0, false
		}
	}
	c.op = history.Op{Kind: c.want.kind, Flags: c.want.flags, Key: c.want.key, Attempt: a, Intended: c.want.intended}
	if again {
		c.op.Intended = 0
		c.err = c.rec.begin(&c.op)
	} else {
		c.err = c.rec.acquire(&c.op)
	}
	if c.err != nil {
		return 0, false
	}
	c.steps.place(PlaceAcquiring, c.want.key, &a)
	c.steps.begin(&c.op)
	hold, err := c.ask(ctx, a)
	c.res = history.Result{Outcome: impls.Outcome(c.want.kind, err)}
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
	if again {
		at = c.rec.end(&c.res)
	} else {
		at = c.rec.acquired(&c.res)
	}
	c.errors.add(c.id, c.op.Kind, c.res.Outcome, err, at)
	c.err = c.steps.end()
	switch {
	case hold != nil:
		c.grants = append(c.grants, grant{attempt: a, hold: hold, lost: hold.Lost()})
	case errors.Is(err, errors.ErrUnsupported):
		c.err = errors.Join(c.err, fmt.Errorf("%s cannot serve the load %s: %w", c.spec.Scenario.Recipe, c.spec.Scenario.Workload.Kind, err))
	case c.err == nil && c.res.Outcome == history.Unknown:
		c.cleanUp(a)
		c.res.Outcome = history.Unknown
	}
	return at, hold != nil
}

// limited is the context of one acquire. One that asks again for a lock that
// the client holds is answered at once, or something is wrong. Waits of a churn
// end at a time drawn evenly, half of them by a deadline that the lock can see
// coming, half by being called off.
func (c *client) limited(again bool) (context.Context, context.CancelFunc) {
	l := &c.spec.Scenario.Workload
	limit := l.AcquireLimit.D()
	switch {
	case again && (limit <= 0 || limit > c.callLimit):
		limit = c.callLimit
	case limit <= 0:
		return c.acquireCtx, func() {}
	case l.Kind == scenario.Churn:
		limit = 1 + time.Duration(c.kindRand.Int64N(int64(limit)))
		if c.kindRand.Uint64()&1 == 0 {
			ctx, cancel := context.WithCancel(c.acquireCtx)
			timer := time.AfterFunc(limit, cancel)
			return ctx, func() { timer.Stop(); cancel() }
		}
	}
	return context.WithTimeout(c.acquireCtx, limit)
}

// ask sends the acquire.
func (c *client) ask(ctx context.Context, a history.Attempt) (impls.Hold, error) {
	key := c.spec.Keys[c.want.key]
	switch {
	case c.want.batch:
		return c.able.batcher.AcquireAll(ctx, c.want.names, a)
	case c.want.flags&history.FlagShared != 0:
		return c.able.readWriter.AcquireRead(ctx, key, a)
	case c.want.kind == history.KindTry:
		return c.lock.TryAcquire(ctx, key, a)
	}
	return c.lock.Acquire(ctx, key, a)
}

// work is the critical section, from the stamp of the last grant on, and the
// release. Who has locked several times over releases all grants but the first
// when half of the time is over: what follows is still guarded.
func (c *client) work(granted int64) {
	if c.steps.place(PlaceHeld, c.want.key, &c.grants[len(c.grants)-1].attempt) {
		granted = c.clock.Now() // it held the lock there, and has not begun yet
	}
	s := section{client: c}
	if c.guard != nil {
		s.read()
	}
	hold := c.spec.Scenario.Workload.Hold.Sample(c.holdRand)
	if len(c.grants) > 1 {
		s.hold(granted, hold/2)
		for len(c.grants) > 1 && c.err == nil {
			c.release()
		}
	}
	if c.holder {
		hold = time.Duration(c.phases.end.Load() - granted)
	}
	s.hold(granted, hold)
	if c.guard != nil {
		s.write()
	}
	if c.err != nil {
		c.grants = c.grants[:0]
		return // nothing more can be recorded, so nothing more is done
	}
	c.release()
}
