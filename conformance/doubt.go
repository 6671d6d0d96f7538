package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// answerLimit is how long a client in these checks waits for an answer that
// was lost, at first.
const answerLimit = 200 * time.Millisecond

func acquireAnswerLost(t T, s Subject) {
	key := s.key(t)
	b := s.open(t)
	a, net := s.openOnNetwork(t)

	net.mustSet(t, muted)
	gone, err := s.unheard(t, a, net, key)
	want(t, "acquire whose answer was lost", err, impls.ErrUnknown)
	if net.effect().HeldBytes == 0 {
		t.Fatalf("no answer was lost: does the recipe dial through Config.Dial?")
	}
	mutedCleanup(t, a, key, gone)
	net.mustSet(t, alive)
	_ = s.cleanup(t, a, key, gone)
	h := s.try(t, "try after the clean-up", b, key, nil)
	want(t, "clean up again", a.Cleanup(t.Context(), key, gone), impls.ErrLost)
	s.try(t, "try after another clean-up", a, key, impls.ErrBusy)
	release(t, h)
}

// unheard acquires with a client that receives no answers. A machine that is so
// slow that the call ended before the servers answered anything gets more time
// for another attempt.
func (s Subject) unheard(t T, c impls.Client, net *network, key string) (impls.Attempt, error) {
	for limit := answerLimit; ; limit *= 2 {
		mine := attempt()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		_, err := c.Acquire(ctx, key, mine)
		cancel()
		doubtful := errors.Is(err, impls.ErrUnknown)
		if net.effect().HeldBytes > 0 || limit > s.Patience || !doubtful && !errors.Is(err, impls.ErrFailed) {
			return mine, err
		}
		if doubtful {
			net.mustSet(t, alive)
			_ = s.cleanup(t, c, key, mine)
			net.mustSet(t, muted)
		}
	}
}

// mutedCleanup cleans up without hearing the answer, which must not be taken
// for one.
func mutedCleanup(t T, c impls.Client, key string, a impls.Attempt) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerLimit)
	defer cancel()
	err := c.Cleanup(ctx, key, a)
	if impls.Definite(err) {
		t.Errorf("clean up without hearing the answer: %v is definite", err)
	}
}

func releaseAnswerLost(t T, s Subject) {
	key := s.key(t)
	b := s.open(t)
	a, net := s.openOnNetwork(t)

	h := s.acquire(t, a, key)
	net.mustSet(t, muted)
	ctx, cancel := context.WithTimeout(t.Context(), answerLimit)
	err := h.Release(ctx)
	cancel()
	// A release in two steps may have lost the answer to a first that changes
	// nothing: then it was without effect.
	if err == nil || !errors.Is(err, impls.ErrUnknown) && !errors.Is(err, impls.ErrFailed) {
		t.Fatalf("release whose answer was lost: got %v, want a doubt", err)
	}
	net.mustSet(t, alive)
	_ = s.cleanup(t, a, key, h.Attempt())
	next := s.try(t, "try after the clean-up", b, key, nil)
	want(t, "release again", h.Release(t.Context()), impls.ErrLost)
	want(t, "clean up again", a.Cleanup(t.Context(), key, h.Attempt()), impls.ErrLost)
	s.try(t, "try after both", a, key, impls.ErrBusy)
	release(t, next)
}

// unreachable cuts a client off so that it notices: its connections end, and
// it cannot connect again.
func unreachable(t T, s Subject) {
	key := s.key(t)
	b := s.open(t)
	a, net := s.openOnNetwork(t)
	net.mustSet(t, unplugged)

	doubts := s.refusedTries(t, a, net, key)
	net.mustSet(t, alive)
	for _, tried := range doubts {
		_ = s.cleanup(t, a, key, tried)
	}
	release(t, s.acquire(t, b, key))
	h := s.reacquire(t, a, key)
	got, err := s.answeredTry(t, b, key)
	if (err == nil || errors.Is(err, errTookUnseen)) && s.over(t, h) {
		// It had been cut off for so long that its session ended, and it came
		// to know that only afterwards.
		if err == nil {
			release(t, got)
		}
		return
	}
	want(t, "try a lock that the client which was cut off holds", err, impls.ErrBusy)
	release(t, h)
}

// over reports whether a hold is, by its lease's end or because the lock says
// so, which it may take until the end of a TTL for.
func (s Subject) over(t T, h impls.Hold) bool {
	if end := h.LeaseEnd(); !end.IsZero() && !s.Config.Clock.Now().Before(end) {
		return true
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*s.Config.TTL)
	defer cancel()
	select {
	case <-h.Lost():
		return true
	case <-ctx.Done():
		return false
	}
}

// refusedTries tries until a connection was refused and the client says that a
// try had no effect. The first tries may meet the end of their connection
// half-way; those in doubt are returned.
func (s Subject) refusedTries(t T, a impls.Client, net *network, key string) (doubts []impls.Attempt) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.Patience)
	defer cancel()
	for {
		tried := attempt()
		_, err := a.TryAcquire(ctx, key, tried)
		if err == nil {
			t.Fatalf("granted though no server can be reached")
		}
		switch failed := errors.Is(err, impls.ErrFailed) && !errors.Is(err, impls.ErrUnknown); {
		case failed && net.effect().Dials > 0:
			return doubts
		case failed:
		case errors.Is(err, impls.ErrUnknown):
			doubts = append(doubts, tried)
		default:
			t.Fatalf("try though no server can be reached: got %v, want %v", err, impls.ErrFailed)
		}
		if ctx.Err() != nil {
			t.Fatalf("no definite answer and %d refused connections after %v without a server: %v (does the recipe dial through Config.Dial?)",
				net.effect().Dials, s.Patience, err)
		}
		_ = s.Config.Clock.Sleep(ctx, 5*time.Millisecond)
	}
}

// reacquire acquires with a client whose session may have ended without its
// knowing, as it was cut off or the machine is slow: that spoils the attempts
// that build on it.
func (s Subject) reacquire(t T, c impls.Client, key string) impls.Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.Patience)
	defer cancel()
	for {
		a := attempt()
		h, err := c.Acquire(ctx, key, a)
		if err == nil {
			return h
		}
		if ctx.Err() != nil {
			t.Fatalf("acquire: the servers can be reached, and after %v: %v", s.Patience, err)
		}
		if errors.Is(err, impls.ErrUnknown) {
			_ = s.cleanup(t, c, key, a)
		}
		_ = s.Config.Clock.Sleep(ctx, 5*time.Millisecond)
	}
}
