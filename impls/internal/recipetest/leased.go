package recipetest

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// Leased checks what recipes bound by a TTL must show besides. It takes about
// three TTLs.
func Leased(t *testing.T, r impls.Recipe, cfg impls.Config) {
	for name, check := range map[string]func(*testing.T, impls.Recipe, impls.Config){
		"lost after its end": lostAfterEnd,
		"extended":           extended,
		"lease's end":        leaseEnd,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, r, cfg)
		})
	}
}

// lostAfterEnd: a lease that ended passes to a waiter, no earlier than its
// holder was told, and its holder can then neither extend nor free anything.
func lostAfterEnd(t *testing.T, r impls.Recipe, cfg impls.Config) {
	key := NewKey()
	Prepare(t, r, cfg, key)
	a, b, c := Open(t, r, cfg), Open(t, r, cfg), Open(t, r, cfg)
	old, err := a.Acquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "acquire", err, nil)
	h, err := b.Acquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "acquire after the lease", err, nil)
	if now := cfg.Clock.Now(); now.Before(old.LeaseEnd()) {
		t.Errorf("granted %s before the end of the lease", old.LeaseEnd().Sub(now))
	}
	if r.Info().Fencing && h.Fence() <= old.Fence() {
		t.Errorf("fence %d after %d", h.Fence(), old.Fence())
	}
	WantOutcome(t, "extend after the end", old.Extend(t.Context()), impls.ErrLost)
	WantOutcome(t, "release after the end", old.Release(t.Context()), impls.ErrLost)
	WantOutcome(t, "clean up after the end", a.Cleanup(t.Context(), key, old.Attempt()), impls.ErrLost)
	_, err = c.TryAcquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "try after a foreign release", err, impls.ErrBusy)
	WantOutcome(t, "release", h.Release(t.Context()), nil)
}

// extended: a renewed lease outlives its first end.
func extended(t *testing.T, r impls.Recipe, cfg impls.Config) {
	key := NewKey()
	Prepare(t, r, cfg, key)
	a, b := Open(t, r, cfg), Open(t, r, cfg)
	h, err := a.Acquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "acquire", err, nil)
	first := h.LeaseEnd()
	for cfg.Clock.Now().Before(first.Add(cfg.TTL / 2)) {
		WantOutcome(t, "extend", h.Extend(t.Context()), nil)
		_, err := b.TryAcquire(t.Context(), key, NewAttempt())
		WantOutcome(t, "try", err, impls.ErrBusy)
		if err := cfg.Clock.Sleep(t.Context(), cfg.TTL/8); err != nil {
			t.Fatal(err)
		}
	}
	if !h.LeaseEnd().After(first) {
		t.Errorf("the lease's end did not move from %s", first)
	}
	WantOutcome(t, "release", h.Release(t.Context()), nil)
	WantOutcome(t, "extend after the release", h.Extend(t.Context()), impls.ErrLost)
	h, err = b.TryAcquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "try", err, nil)
	WantOutcome(t, "release", h.Release(t.Context()), nil)
}

// leaseEnd is counted from before the request was sent, by the client's clock.
func leaseEnd(t *testing.T, r impls.Recipe, cfg impls.Config) {
	key := NewKey()
	Prepare(t, r, cfg, key)
	cfg.Clock = ahead{cfg.Clock, time.Hour}
	c := Open(t, r, cfg)
	before := cfg.Clock.Now()
	h, err := c.Acquire(t.Context(), key, NewAttempt())
	after := cfg.Clock.Now()
	WantOutcome(t, "acquire", err, nil)
	if end := h.LeaseEnd(); end.Before(before.Add(cfg.TTL)) || !end.Before(after.Add(cfg.TTL)) {
		t.Errorf("lease of %s ends at %s; acquired from %s to %s", cfg.TTL, end, before, after)
	}
	WantOutcome(t, "release", h.Release(t.Context()), nil)
}

// ahead is a clock that is fast.
type ahead struct {
	impls.Clock
	by time.Duration
}

func (a ahead) Now() time.Time { return a.Clock.Now().Add(a.by) }
