package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// carryOut does one call of the client, and writes into a what came of it.
func (m *member) carryOut(ctx context.Context, o order, a *answer) {
	if m.client == nil && o.Do != doOpen {
		a.fail(history.KindAcquire, fmt.Errorf("%w: the client is not open", impls.ErrFailed))
		return
	}
	switch o.Do {
	case doOpen:
		a.fail(history.KindAcquire, m.open(ctx, o.Proxied))
	case doClose:
		a.fail(history.KindRelease, m.client.Close())
	case doDepth:
		r, ok := m.client.(impls.Reentrant)
		if a.Unsupported = !ok; ok {
			a.Depth = r.Depth(o.Keys[0])
		}
	case doRelease, doExtend, doLook:
		h := m.hold(o.Hold)
		if h == nil {
			a.fail(history.KindRelease, fmt.Errorf("%w: there is no hold %d", impls.ErrFailed, o.Hold))
			return
		}
		switch o.Do {
		case doRelease:
			a.fail(history.KindRelease, h.Release(ctx))
		case doExtend:
			a.fail(history.KindExtend, h.Extend(ctx))
		}
		a.Returned = m.clock.Now()
		m.show(h, a)
	case doHammer:
		m.hammer(ctx, o, a)
	default:
		m.acquire(ctx, o, a)
	}
}

// acquire does the calls that acquire or clean up, in all their kinds.
func (m *member) acquire(ctx context.Context, o order, a *answer) {
	var h impls.Hold
	err := errors.ErrUnsupported
	kind := history.KindAcquire
	rw, shared := m.client.(impls.ReadWriter)
	all, batch := m.client.(impls.Batcher)
	switch {
	case o.Do == doAcquire:
		h, err = m.client.Acquire(ctx, o.Keys[0], o.Attempt)
	case o.Do == doTry:
		kind = history.KindTry
		h, err = m.client.TryAcquire(ctx, o.Keys[0], o.Attempt)
	case o.Do == doCleanup:
		kind = history.KindCleanup
		err = m.client.Cleanup(ctx, o.Keys[0], o.Attempt)
	case o.Do == doAcquireRead && shared:
		h, err = rw.AcquireRead(ctx, o.Keys[0], o.Attempt)
	case o.Do == doTryRead && shared:
		kind = history.KindTry
		h, err = rw.TryAcquireRead(ctx, o.Keys[0], o.Attempt)
	case o.Do == doAcquireAll && batch:
		h, err = all.AcquireAll(ctx, o.Keys, o.Attempt)
	case o.Do == doTryAll && batch:
		kind = history.KindTry
		h, err = all.TryAcquireAll(ctx, o.Keys, o.Attempt)
	case o.Do == doCleanupAll && batch:
		kind = history.KindCleanup
		err = all.CleanupAll(ctx, o.Keys, o.Attempt)
	}
	a.Returned = m.clock.Now()
	a.fail(kind, err)
	if err == nil && h != nil {
		m.show(m.note(o, h), a)
	}
}

// fail names the outcome of err, which may be nil.
func (a *answer) fail(k history.Kind, err error) {
	a.Outcome = impls.Outcome(k, err)
	if err == nil {
		return
	}
	a.Error = err.Error()
	a.Unsupported = errors.Is(err, errors.ErrUnsupported)
}

// wasLate names, among a hammer's odd calls, releases after the lease's end:
// they may free a successor's lock, and then what looks like two holders is the
// machine's fault.
const wasLate = "late release"

// hammer acquires and releases the key again and again, for so many rounds or
// until ctx ends, and records when it held.
func (m *member) hammer(ctx context.Context, o order, a *answer) {
	a.Odd = map[string]int{}
	for range o.Count {
		mine := attempt()
		h, err := m.client.Acquire(ctx, o.Keys[0], mine)
		if err == nil {
			s := span{From: m.clock.Now()}
			_ = m.cfg.Clock.Sleep(ctx, insideFor)
			s.To = m.clock.Now()
			end := h.LeaseEnd()
			if !end.IsZero() {
				s.To = min(s.To, m.clock.At(end))
			}
			a.Spans = append(a.Spans, s)
			err = h.Release(context.WithoutCancel(ctx))
			if !end.IsZero() && !m.cfg.Clock.Now().Before(end) {
				a.Odd[wasLate]++
			}
		}
		if err == nil {
			continue
		}
		if ctx.Err() == nil {
			a.Odd[impls.Outcome(history.KindAcquire, err).String()]++
		}
		m.settle(context.WithoutCancel(ctx), o.Keys[0], mine, err)
		if ctx.Err() != nil {
			return
		}
	}
}

// settle cleans up after an error that left a doubt.
func (m *member) settle(ctx context.Context, key string, mine impls.Attempt, err error) {
	if !errors.Is(err, impls.ErrUnknown) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_ = settle(ctx, m.cfg.Clock, m.client, key, mine) // the next call meets what it left
}
