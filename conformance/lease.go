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
			t.Logf("the recipe does not know when its lease ends")
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
	if _, err := s.answeredTry(t, c, key); !errors.Is(err, impls.ErrBusy) && s.Config.Clock.Now().Before(h.LeaseEnd()) {
		t.Errorf("try within the successor's lease: got %v, want %v", err, impls.ErrBusy)
	}
}

func extend(t T, s Subject) {
	s.untilDecided(t, func() bool { return seenExtended(t, s) })
}

// seenExtended reports whether it saw a lease live on: a slow machine may let it
// end between two renewals.
func seenExtended(t T, s Subject) bool {
	key := s.key(t)
	a, b := s.open(t), s.open(t)
	h := s.acquire(t, a, key)
	first := h.LeaseEnd()
	lapsed := func(err error) bool {
		return errors.Is(err, impls.ErrLost) && !s.Config.Clock.Now().Before(h.LeaseEnd())
	}
	for s.Config.Clock.Now().Before(first.Add(s.Config.TTL / 2)) {
		if err := h.Extend(t.Context()); lapsed(err) {
			return false
		} else if err != nil {
			t.Fatalf("extend: %v", err)
		}
		_, err := s.answeredTry(t, b, key)
		if !errors.Is(err, impls.ErrBusy) && s.Config.Clock.Now().Before(h.LeaseEnd()) {
			t.Fatalf("try while the lease is extended: got %v, want %v", err, impls.ErrBusy)
		}
		_ = s.Config.Clock.Sleep(t.Context(), s.Config.TTL/8)
	}
	if !h.LeaseEnd().After(first) {
		t.Fatalf("the lease's end did not move")
	}
	err := h.Release(t.Context())
	if lapsed(err) {
		return false
	}
	want(t, "release", err, nil)
	want(t, "extend what was released", h.Extend(t.Context()), impls.ErrLost)
	release(t, s.try(t, "try after the release", b, key, nil))
	return true
}

func keptSession(t T, s Subject) {
	s.untilDecided(t, func() bool { return seenKept(t, s) })
}

// seenKept reports whether it saw a session live on. Where the lock answers another
// client only after half a TTL, or this process stands still for as long, its
// renewals may come too late, and nothing is decided.
func seenKept(t T, s Subject) bool {
	key := s.key(t)
	a, b := s.open(t), s.open(t)
	h := s.acquire(t, a, key)
	clock := s.Config.Clock
	first := h.LeaseEnd()
	if err := h.Extend(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("extend: got %v; a session renews itself, want %v", err, errors.ErrUnsupported)
	}
	last := clock.Now()
	inTime := func() bool {
		was := last
		last = clock.Now()
		return last.Sub(was) <= s.Config.TTL/2
	}
	for last.Before(first.Add(s.Config.TTL)) {
		_, err := s.answeredTry(t, b, key)
		_ = clock.Sleep(t.Context(), s.Config.TTL/8)
		if !inTime() {
			return false
		}
		want(t, "try while the session is alive", err, impls.ErrBusy)
	}
	end, lost := h.LeaseEnd(), false
	select {
	case <-h.Lost():
		lost = true
	default:
	}
	err := h.Release(t.Context())
	if !inTime() {
		return false
	}
	if lost {
		t.Errorf("a session was reported lost though its client and the server were there all the time")
	}
	if !end.After(first) {
		t.Errorf("the lease's end did not move with the renewals")
	}
	want(t, "release", err, nil)
	return true
}

// untilDecided repeats what a slow machine may spoil.
func (s Subject) untilDecided(t T, decided func() bool) {
	t.Helper()
	for range tries {
		if decided() {
			return
		}
	}
	t.Fatalf("undecided: %d times the machine was too slow for a lease of %v", tries, s.Config.TTL)
}

func lostSession(t T, s Subject) {
	key := s.key(t)
	b := s.open(t)
	a, net := s.openOnNetwork(t)
	old := s.acquire(t, a, key)

	net.mustSet(t, dead)
	ctx, cancel := context.WithTimeout(t.Context(), s.Patience)
	defer cancel()
	h := s.reacquire(t, b, key)
	granted := s.Config.Clock.Now()
	if end := old.LeaseEnd(); granted.Before(end) {
		t.Errorf("granted to another %v before the lease's end", end.Sub(granted))
	}
	select {
	case <-old.Lost():
		// It could know by the end of its own lease, which is before the grant.
		if late := s.Config.Clock.Now().Sub(granted); late > s.Config.TTL {
			t.Errorf("the client that was cut off learned of the loss %v after another was granted the lock, more than a lease", late)
		}
	case <-ctx.Done():
		t.Fatalf("the client that was cut off did not learn of the loss within %v", s.Patience)
	}
	net.mustSet(t, alive)
	if err := s.cleanup(t, a, key, old.Attempt()); err == nil {
		t.Errorf("the clean-up of a lost session freed something")
	}
	got, err := s.answeredTry(t, a, key)
	if (err == nil || errors.Is(err, errTookUnseen)) && s.over(t, h) {
		if err == nil {
			release(t, got) // a slow machine cost the successor its session too
		}
		return
	}
	want(t, "try by the former holder", err, impls.ErrBusy)
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
