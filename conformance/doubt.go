package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// answerLimit is how long a client in these checks waits for an answer that
// was lost.
const answerLimit = 200 * time.Millisecond

func acquireAnswerLost(t T, s Subject) {
	key := s.key(t)
	b := s.open(t)
	var net network
	cut := s
	cut.Config.Dial = net.dial(s.Config.Dial)
	a := cut.open(t)

	net.set(deaf)
	gone := attempt()
	ctx, cancel := context.WithTimeout(t.Context(), answerLimit)
	_, err := a.Acquire(ctx, key, gone)
	cancel()
	want(t, "acquire whose answer was lost", err, impls.ErrUnknown)
	if net.lost.Load() == 0 {
		t.Fatalf("no answer was lost: does the recipe dial through Config.Dial?")
	}
	deafCleanup(t, a, key, gone)
	net.set(alive)
	_ = s.cleanup(t, a, key, gone)
	h := try(t, "try after the clean-up", b, key, nil)
	want(t, "clean up again", a.Cleanup(t.Context(), key, gone), impls.ErrLost)
	try(t, "try after another clean-up", a, key, impls.ErrBusy)
	release(t, h)
}

// deafCleanup cleans up without hearing the answer, which must not be taken
// for one.
func deafCleanup(t T, c impls.Client, key string, a impls.Attempt) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerLimit)
	defer cancel()
	err := c.Cleanup(ctx, key, a)
	if err == nil || errors.Is(err, impls.ErrLost) && !errors.Is(err, impls.ErrUnknown) {
		t.Errorf("clean up without hearing the answer: %v is definite", err)
	}
}

func releaseAnswerLost(t T, s Subject) {
	key := s.key(t)
	b := s.open(t)
	var net network
	cut := s
	cut.Config.Dial = net.dial(s.Config.Dial)
	a := cut.open(t)

	h := cut.acquire(t, a, key)
	net.set(deaf)
	ctx, cancel := context.WithTimeout(t.Context(), answerLimit)
	err := h.Release(ctx)
	cancel()
	// A release in two steps may have lost the answer to a first that changes
	// nothing: then it was without effect.
	if err == nil || !errors.Is(err, impls.ErrUnknown) && !errors.Is(err, impls.ErrFailed) {
		t.Fatalf("release whose answer was lost: got %v, want a doubt", err)
	}
	net.set(alive)
	_ = s.cleanup(t, a, key, h.Attempt())
	next := try(t, "try after the clean-up", b, key, nil)
	want(t, "release again", h.Release(t.Context()), impls.ErrLost)
	want(t, "clean up again", a.Cleanup(t.Context(), key, h.Attempt()), impls.ErrLost)
	try(t, "try after both", a, key, impls.ErrBusy)
	release(t, next)
}
