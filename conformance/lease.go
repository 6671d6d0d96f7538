package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// leaseEnd uses a client whose clock is an hour ahead, and is then set, forward
// and back.
func leaseEnd(t T, s Subject) {
	key := s.key(t)
	clock := impls.NewSkewedClock(ahead{s.Config.Clock, time.Hour})
	s.Config.Clock = clock
	opened := impls.Monotonic(clock)
	c := s.open(t)
	for _, by := range []time.Duration{0, 2 * time.Hour, -2 * time.Hour} {
		clock.Set(by)
		h := s.acquire(t, c, key)
		after := impls.Monotonic(clock)
		end := h.LeaseEnd()
		release(t, h)
		if end.IsZero() {
			t.Logf("the recipe cannot tell when its lease ends")
			return
		}
		if !end.After(opened) || !end.Before(after.Add(s.Config.TTL)) {
			t.Errorf("with its clock set by %v, the lease ends %v after the client was opened; it was granted %v after, for %v", by, end.Sub(opened), after.Sub(opened), s.Config.TTL)
		}
	}
}

// ahead is a clock that is fast.
type ahead struct {
	impls.Clock
	by time.Duration
}

func (a ahead) Now() time.Time { return a.Clock.Now().Add(a.by) }

func expiry(t T, s Subject) {
	key := s.key(t)
	a, b, c := s.open(t), s.open(t), s.open(t)
	old := s.acquire(t, a, key)
	end := old.LeaseEnd()
	h := s.acquire(t, b, key) // waits for the end
	if now := s.Config.Clock.Now(); now.Before(end) {
		t.Errorf("granted to another %v before the lease's end", end.Sub(now))
	}
	if s.Recipe.Info().Fencing && h.Fence() <= old.Fence() {
		t.Errorf("token %d after %d", h.Fence(), old.Fence())
	}
	if s.Recipe.Info().Promises(impls.Extends) {
		want(t, "extend an expired lease", old.Extend(t.Context()), impls.ErrLost)
	}
	want(t, "release an expired lease", old.Release(t.Context()), impls.ErrLost)
	want(t, "clean up an expired lease", a.Cleanup(t.Context(), key, old.Attempt()), impls.ErrLost)
	if !s.Config.Clock.Now().Before(h.LeaseEnd()) {
		t.Logf("the machine is too slow to see the successor unharmed within its lease")
		return
	}
	if _, err := c.TryAcquire(t.Context(), key, attempt()); !errors.Is(err, impls.ErrBusy) && s.Config.Clock.Now().Before(h.LeaseEnd()) {
		t.Errorf("try within the successor's lease: got %v, want %v", err, impls.ErrBusy)
	}
}

func extend(t T, s Subject) {
	key := s.key(t)
	a, b := s.open(t), s.open(t)
	h := s.acquire(t, a, key)
	first := h.LeaseEnd()
	for s.Config.Clock.Now().Before(first.Add(s.Config.TTL / 2)) {
		until := h.LeaseEnd()
		if err := h.Extend(t.Context()); err != nil {
			if errors.Is(err, impls.ErrLost) && !s.Config.Clock.Now().Before(until) {
				t.Fatalf("the machine is too slow: a lease of %v ended between two renewals", s.Config.TTL)
			}
			t.Fatalf("extend: %v", err)
		}
		_, err := b.TryAcquire(t.Context(), key, attempt())
		if !errors.Is(err, impls.ErrBusy) && s.Config.Clock.Now().Before(h.LeaseEnd()) {
			t.Fatalf("try while the lease is extended: got %v, want %v", err, impls.ErrBusy)
		}
		_ = s.Config.Clock.Sleep(t.Context(), s.Config.TTL/8)
	}
	if !h.LeaseEnd().After(first) {
		t.Errorf("the lease's end did not move")
	}
	release(t, h)
	want(t, "extend what was released", h.Extend(t.Context()), impls.ErrLost)
	release(t, try(t, "try after the release", b, key, nil))
}

func keptSession(t T, s Subject) {
	key := s.key(t)
	a, b := s.open(t), s.open(t)
	h := s.acquire(t, a, key)
	first := h.LeaseEnd()
	if err := h.Extend(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("extend: got %v; a session renews itself, want %v", err, errors.ErrUnsupported)
	}
	for s.Config.Clock.Now().Before(first.Add(s.Config.TTL)) {
		try(t, "try while the session is alive", b, key, impls.ErrBusy)
		_ = s.Config.Clock.Sleep(t.Context(), s.Config.TTL/8)
	}
	select {
	case <-h.Lost():
		t.Errorf("a session was reported lost though its client and the server were there all the time")
	default:
	}
	if !h.LeaseEnd().After(first) {
		t.Errorf("the lease's end did not move with the renewals")
	}
	release(t, h)
}

func lostSession(t T, s Subject) {
	key := s.key(t)
	b := s.open(t)
	var net network
	cut := s
	cut.Config.Dial = net.dial(s.Config.Dial)
	a := cut.open(t)
	old := cut.acquire(t, a, key)

	net.set(dead)
	ctx, cancel := context.WithTimeout(t.Context(), s.Patience)
	defer cancel()
	h, err := b.Acquire(ctx, key, attempt())
	want(t, "acquire the lock of a client that was cut off", err, nil)
	if end, now := old.LeaseEnd(), s.Config.Clock.Now(); now.Before(end) {
		t.Errorf("granted to another %v before the lease's end", end.Sub(now))
	}
	select {
	case <-old.Lost():
	case <-ctx.Done():
		t.Fatalf("the client that was cut off was not told within %v", s.Patience)
	}
	net.set(alive)
	if err := s.cleanup(t, a, key, old.Attempt()); err == nil {
		t.Errorf("the clean-up of a lost session freed something")
	}
	try(t, "try by the former holder", a, key, impls.ErrBusy)
	release(t, h)
	next := s.reacquire(t, a, key)
	select {
	case <-next.Lost():
		t.Errorf("a new hold is lost from the start")
	default:
	}
	if s.Recipe.Info().Fencing && next.Fence() <= h.Fence() {
		t.Errorf("token %d after %d", next.Fence(), h.Fence())
	}
	release(t, next)
}
