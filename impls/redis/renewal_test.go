package redis_test

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// TestWatchdogReportsRenewals: every renewal of a hold is reported with its outcome, by the
// time at which it was sent, after the step before it.
func TestWatchdogReportsRenewals(t *testing.T) {
	s := serve(t)
	clock, network, gate, reported := newManual(), &link{}, recipetest.NewGate(), recipetest.NewRenewals()
	a, b := s.open(t, "redis/watchdog", with(clock), through(network), stepping(gate), recipetest.ReportingTo(reported)), s.open(t, "redis/token")
	key := recipetest.NewKey()
	h := acquire(t, a, key)
	if n := gate.Count(impls.StepRenewing); n != 0 {
		t.Errorf("%d renewals before any is due", n)
	}
	open := gate.Shut(impls.StepRenewing)
	clock.next()()
	gate.Await(t, impls.StepRenewing, 1)
	if list := reported.Of(h.Attempt()); len(list) != 0 {
		t.Errorf("renewed before it was let go: %v", list)
	}
	open()
	wake := clock.next()
	one := reported.Await(t, h, 0, nil)
	if end := one.Sent.Add(ttl); !end.Equal(h.LeaseEnd()) {
		t.Errorf("sent at %v, but the lease ends at %v", one.Sent, h.LeaseEnd())
	}

	network.setCut(true)
	wake()
	wake = clock.next()
	reported.Await(t, h, 1, impls.ErrUnknown) // the connection broke
	wake()
	wake = clock.next()
	reported.Await(t, h, 2, impls.ErrFailed) // no server
	network.setCut(false)

	s.remove(t, key)
	other := acquire(t, b, key)
	wake()
	<-h.Lost()
	reported.Await(t, h, 3, impls.ErrLost)
	if n, want := gate.Count(impls.StepRenewing), len(reported.Of(h.Attempt())); n != want || want != 4 {
		t.Errorf("came %d times to the step, reported of %d renewals; want 4", n, want)
	}
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), impls.ErrLost)
	release(t, other)
}

// TestWatchdogSkewed: a clock that is set, forward or back, neither ends a hold
// that is renewed nor keeps one that cannot be.
func TestWatchdogSkewed(t *testing.T) {
	s := serve(t)
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		base, network := &late{manual: newManual()}, &link{}
		clock := impls.NewSkewedClock(base)
		h := acquire(t, s.open(t, "redis/watchdog", with(clock), through(network)), recipetest.NewKey())
		before := h.LeaseEnd()
		clock.Set(by)
		base.next()()
		wake := base.next()
		if isLost(h) || !h.LeaseEnd().After(before) || h.LeaseEnd().Sub(before) > ttl {
			t.Errorf("set by %v: lost %t; the lease's end moved by %v", by, isLost(h), h.LeaseEnd().Sub(before))
		}
		network.setCut(true)
		wake()
		wake = base.next()
		if isLost(h) {
			t.Errorf("set by %v: lost before its end", by)
		}
		base.pass()
		wake()
		<-h.Lost()
	}
}
