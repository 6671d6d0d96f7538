package redis_test

import (
	"errors"
	"testing"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// scripted lists the recipes whose lock is taken by one request and freed by a
// script.
func scripted() []string {
	return []string{"redis/token", "redis/watchdog", "redis/pubsub", "redis/fenced", "redis/reentrant", "redis/batch"}
}

// TestScriptsForgotten: a server that lost its scripts, by a restart or a
// flush, serves the next call all the same.
func TestScriptsForgotten(t *testing.T) {
	s := serve(t)
	for _, id := range scripted() {
		t.Run(id, func(t *testing.T) {
			cl := s.open(t, id)
			key := recipetest.NewKey()
			forget := func() {
				if err := s.admin.ScriptFlush(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
			forget()
			h := acquire(t, cl, key)
			forget()
			if err := h.Extend(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
				recipetest.WantOutcome(t, "extend", err, nil)
			}
			forget()
			release(t, h)
			forget()
			recipetest.WantOutcome(t, "clean up", cl.Cleanup(t.Context(), key, h.Attempt()), impls.ErrLost)
		})
	}
}

// TestRefusedByServer: what the server says it did not do, it did not do.
func TestRefusedByServer(t *testing.T) {
	s := serve(t)
	for _, id := range scripted() {
		t.Run(id, func(t *testing.T) {
			cl := s.open(t, id)
			key := recipetest.NewKey()

			s.set(t, "maxmemory", "1")
			_, err := cl.TryAcquire(t.Context(), key, recipetest.NewAttempt())
			s.set(t, "maxmemory", "0")
			recipetest.WantOutcome(t, "try without memory", err, impls.ErrFailed)

			s.set(t, "min-replicas-to-write", "1")
			_, err = cl.TryAcquire(t.Context(), key, recipetest.NewAttempt())
			s.set(t, "min-replicas-to-write", "0")
			recipetest.WantOutcome(t, "try without replicas", err, impls.ErrFailed)

			s.there(t, 0, key, "{"+key+"}:fence")
			h := acquire(t, cl, key)
			s.set(t, "min-replicas-to-write", "1")
			err = h.Release(t.Context())
			s.set(t, "min-replicas-to-write", "0")
			recipetest.WantOutcome(t, "release without replicas", err, impls.ErrFailed)
			s.there(t, 1, key)
			release(t, h)
			s.there(t, 0, key)
		})
	}
}

// TestOtherKind: a key of another kind, by whomever, is neither taken nor
// changed.
func TestOtherKind(t *testing.T) {
	s := serve(t)
	for _, id := range scripted() {
		t.Run(id, func(t *testing.T) {
			cl := s.open(t, id)
			key := recipetest.NewKey()
			h := acquire(t, cl, key)
			s.remove(t, key)
			if err := s.admin.RPush(t.Context(), key, "foreign").Err(); err != nil {
				t.Fatal(err)
			}
			_, err := cl.TryAcquire(t.Context(), key, recipetest.NewAttempt())
			if !errors.Is(err, impls.ErrBusy) {
				recipetest.WantOutcome(t, "try", err, impls.ErrFailed)
			}
			recipetest.WantOutcome(t, "release", h.Release(t.Context()), impls.ErrFailed)
			s.there(t, 1, key)
		})
	}
}
