package redis_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

func isLost(h impls.Hold) bool {
	select {
	case <-h.Lost():
		return true
	default:
		return false
	}
}

// TestWatchdogRenews: each renewal gives the lock its whole TTL again.
func TestWatchdogRenews(t *testing.T) {
	s := serve(t)
	clock := newManual()
	key := recipetest.NewKey()
	h := acquire(t, s.open(t, "redis/watchdog", with(clock)), key)
	wake := clock.next()
	for range 3 {
		s.hasten(t, key)
		before := h.LeaseEnd()
		wake()
		wake = clock.next() // it sleeps again: it has renewed
		s.renewed(t, key)
		if !h.LeaseEnd().After(before) {
			t.Error("the lease's end did not move")
		}
	}
	if isLost(h) {
		t.Error("lost, though every renewal was confirmed")
	}
	release(t, h)
	s.there(t, 0, key)
}

// TestWatchdogLost: a renewal that finds another token signals the loss, and
// does nothing to the other.
func TestWatchdogLost(t *testing.T) {
	s := serve(t)
	clock := newManual()
	a, b, key := s.open(t, "redis/watchdog", with(clock)), s.open(t, "redis/token"), recipetest.NewKey()
	h := acquire(t, a, key)
	wake := clock.next()
	s.remove(t, key)
	other := acquire(t, b, key)
	s.hasten(t, key)
	if isLost(h) {
		t.Error("signalled before it asked")
	}
	wake()
	<-h.Lost()
	if left, err := s.admin.PTTL(t.Context(), key).Result(); err != nil || left > ttl/2 {
		t.Errorf("the other's lock has %v to live (%v): it was prolonged", left, err)
	}
	recipetest.WantOutcome(t, "extend the other's", other.Extend(t.Context()), nil)
	recipetest.WantOutcome(t, "release what was lost", h.Release(t.Context()), impls.ErrLost)
	release(t, other)
}

// TestWatchdogTriesAgain: a renewal that fails is no loss while the lease lasts.
func TestWatchdogTriesAgain(t *testing.T) {
	s := serve(t)
	clock, network := newManual(), &link{}
	key := recipetest.NewKey()
	h := acquire(t, s.open(t, "redis/watchdog", with(clock), through(network)), key)
	before := h.LeaseEnd()
	network.setCut(true)
	for range 3 {
		clock.next()()
	}
	wake := clock.next()
	if isLost(h) || !h.LeaseEnd().Equal(before) {
		t.Errorf("lost: %t; the end moved by %v without a renewal", isLost(h), h.LeaseEnd().Sub(before))
	}
	network.setCut(false)
	wake()
	clock.next()
	if isLost(h) || !h.LeaseEnd().After(before) {
		t.Errorf("lost: %t, though it could renew again; its end moved by %v", isLost(h), h.LeaseEnd().Sub(before))
	}
	release(t, h)
}

// TestWatchdogSilence: a holder that cannot renew gets the signal at its lease's end.
func TestWatchdogSilence(t *testing.T) {
	s := serve(t)
	clock, network := &late{manual: newManual()}, &link{}
	key := recipetest.NewKey()
	h := acquire(t, s.open(t, "redis/watchdog", with(clock), through(network)), key)
	network.setCut(true)
	clock.next()()
	wake := clock.next()
	if isLost(h) {
		t.Error("signalled before its lease ended")
	}
	clock.pass()
	wake()
	<-h.Lost()
	// The server holds it still, so that it can be released after all.
	network.setCut(false)
	release(t, h)
	s.there(t, 0, key)
}

// TestWatchdogReleaseWaits: while a renewal is under way no release is sent, and
// none is renewed after its release was asked for.
func TestWatchdogReleaseWaits(t *testing.T) {
	s := serve(t)
	clock, network := newManual(), &link{}
	key := recipetest.NewKey()
	h := acquire(t, s.open(t, "redis/watchdog", with(clock), through(network)), key)
	letGo := network.hold()
	clock.next()()
	<-network.waiting // the renewal is under way
	// A release that does not wait has this long to show.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	recipetest.WantOutcome(t, "release behind a renewal", h.Release(ctx), impls.ErrFailed)
	letGo()
	release(t, h)
	s.there(t, 0, key)
}

// TestWatchdogClosed: closing the client ends the renewals, and frees nothing.
func TestWatchdogClosed(t *testing.T) {
	s := serve(t)
	clock, network := newManual(), &link{}
	key, other := recipetest.NewKey(), recipetest.NewKey()
	cfg := s.cfg
	cfg.Clock, cfg.Dial = clock, network.dial
	c, err := recipe(t, "redis/watchdog").Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	acquire(t, c, key)
	acquire(t, c, other)
	letGo := network.hold()
	clock.next()()
	<-network.waiting // one renewal is under way, one to come
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	letGo()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	s.there(t, 2, key, other)
}

// late is a manual clock that can be set past every lease.
type late struct {
	*manual
	passed atomic.Bool
}

func (l *late) pass() { l.passed.Store(true) }

func (l *late) Now() time.Time {
	if l.passed.Load() {
		return l.manual.Now().Add(2 * ttl)
	}
	return l.manual.Now()
}
