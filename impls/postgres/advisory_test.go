package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

func TestAdvisorySessions(t *testing.T) {
	b := newBench(t, "postgres/advisory", "single", time.Millisecond)

	t.Run("session ended under a hold", func(t *testing.T) {
		key := recipetest.NewKey()
		first, second := b.open(t), b.open(t)
		h := hold(t, first, key)
		if n := b.count(t, "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND granted"); n != 1 {
			t.Fatalf("%d sessions held an advisory lock", n)
		}
		next := hold(t, second, key)
		if err := h.Release(t.Context()); err == nil {
			t.Fatal("released a lock that another client holds")
		}
		select {
		case <-h.Lost():
		default:
			t.Error("the hold does not signal that its session is gone")
		}
		recipetest.WantOutcome(t, "release again", h.Release(t.Context()), impls.ErrLost)
		recipetest.WantOutcome(t, "clean up", recipetest.CleanUp(t, first, key, h.Attempt()), impls.ErrLost)
		_, err := first.TryAcquire(t.Context(), key, recipetest.NewAttempt())
		recipetest.WantOutcome(t, "try", err, impls.ErrBusy)
		recipetest.WantOutcome(t, "release", next.Release(t.Context()), nil)
	})

	t.Run("a hold outlives its TTL", func(t *testing.T) {
		key := recipetest.NewKey()
		first, second := b.open(t), b.open(t)
		h := hold(t, first, key)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := second.Acquire(ctx, key, recipetest.NewAttempt())
		recipetest.WantOutcome(t, "acquire", err, impls.ErrFailed)
		if !h.LeaseEnd().IsZero() || !errors.Is(h.Extend(t.Context()), errors.ErrUnsupported) {
			t.Error("the hold has a lease")
		}
		recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
	})

	t.Run("a cancelled waiter leaves the server", func(t *testing.T) {
		key := recipetest.NewKey()
		first, second := b.open(t), b.open(t)
		h := hold(t, first, key)
		for range 20 { // the cancel request must not meet a later statement
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan error)
			go func() {
				_, err := second.Acquire(ctx, key, recipetest.NewAttempt())
				got <- err
			}()
			await(t, "the waiter is in the server", func() bool { return b.waiting(t) == 1 })
			cancel()
			recipetest.WantOutcome(t, "cancelled acquire", <-got, impls.ErrFailed)
			if n := b.waiting(t); n != 0 {
				t.Fatalf("%d waiters are left in the server", n)
			}
			_, err := second.TryAcquire(t.Context(), key, recipetest.NewAttempt())
			recipetest.WantOutcome(t, "try", err, impls.ErrBusy)
		}
		recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
		recipetest.WantOutcome(t, "release", hold(t, second, key).Release(t.Context()), nil)
	})

	t.Run("the lock is taken once by a client", func(t *testing.T) {
		key := recipetest.NewKey()
		client := b.open(t)
		h := hold(t, client, key)
		_, err := client.TryAcquire(t.Context(), key, recipetest.NewAttempt())
		recipetest.WantOutcome(t, "try", err, impls.ErrBusy)
		_, err = client.Acquire(t.Context(), key, recipetest.NewAttempt())
		recipetest.WantOutcome(t, "acquire", err, impls.ErrFailed)
		recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
	})
}

// Behind a pooler the session of the lock serves other clients too.
func TestAdvisoryBehindAPooler(t *testing.T) {
	b := newBench(t, "postgres/advisory", "pooled", time.Second)
	key := recipetest.NewKey()
	first, second := b.open(t), b.open(t)
	h := hold(t, first, key)
	other, err := second.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try by a second client while the first holds", err, nil)
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
	recipetest.WantOutcome(t, "release", other.Release(t.Context()), nil)
}
