package redis_test

import (
	"sync"
	"testing"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

func openBatch(t *testing.T, s served) impls.Batcher {
	t.Helper()
	return s.open(t, "redis/batch").(impls.Batcher)
}

func acquireAll(t *testing.T, c impls.Batcher, keys ...string) impls.Hold {
	t.Helper()
	h, err := c.AcquireAll(t.Context(), keys, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "acquire", err, nil)
	return h
}

func newKeys() (k1, k2, k3 string) {
	return recipetest.NewKey(), recipetest.NewKey(), recipetest.NewKey()
}

// TestBatchAllOrNone: while one of its keys is taken, a batch takes none.
func TestBatchAllOrNone(t *testing.T) {
	s := serve(t)
	a, b := openBatch(t, s), openBatch(t, s)
	k1, k2, k3 := newKeys()
	other := acquire(t, b, k2)
	_, err := a.TryAcquireAll(t.Context(), []string{k1, k2, k3}, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try", err, impls.ErrBusy)
	s.there(t, 0, k1, k3)
	release(t, other)

	keys := []string{k1, k2, k3}
	h := acquireAll(t, a, keys...)
	if h.Key() != k1 {
		t.Errorf("the hold is of %s, want the first key", h.Key())
	}
	clear(keys) // the caller's own
	for _, key := range []string{k1, k2, k3} {
		busy(t, b, key)
		s.hasten(t, key)
	}
	recipetest.WantOutcome(t, "extend", h.Extend(t.Context()), nil)
	for _, key := range []string{k1, k2, k3} {
		s.renewed(t, key)
	}
	release(t, h)
	s.there(t, 0, k1, k2, k3)
}

// TestBatchCircle: clients that want the same keys in another order, or some of
// them, do not wait for one another in a circle.
func TestBatchCircle(t *testing.T) {
	s := serve(t)
	k1, k2, k3 := newKeys()
	var group sync.WaitGroup
	for _, keys := range [][]string{{k1, k2, k3}, {k3, k2, k1}, {k2, k3}, {k3, k1}} {
		c := openBatch(t, s)
		group.Go(func() {
			for range 30 {
				h, err := c.AcquireAll(t.Context(), keys, recipetest.NewAttempt())
				if err == nil {
					err = h.Release(t.Context())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	s.there(t, 0, k1, k2, k3)
}

// TestBatchLostPart: a hold that lost one key is lost, and what it had besides
// is freed when it asks, but nothing of the one who has the lost key now.
func TestBatchLostPart(t *testing.T) {
	s := serve(t)
	for doing, ask := range map[string]func(impls.Hold) error{
		"release": func(h impls.Hold) error { return h.Release(t.Context()) },
		"extend":  func(h impls.Hold) error { return h.Extend(t.Context()) },
	} {
		a, b := openBatch(t, s), openBatch(t, s)
		k1, k2, k3 := newKeys()
		h := acquireAll(t, a, k1, k2, k3)
		s.remove(t, k2)
		other := acquire(t, b, k2)
		recipetest.WantOutcome(t, doing, ask(h), impls.ErrLost)
		s.there(t, 0, k1, k3)
		recipetest.WantOutcome(t, "release afterwards", h.Release(t.Context()), impls.ErrLost)
		release(t, other)
	}
}

// TestBatchCleanup: it frees what is there of an attempt.
func TestBatchCleanup(t *testing.T) {
	s := serve(t)
	a := openBatch(t, s)
	k1, k2, k3 := newKeys()
	for _, lost := range [][]string{nil, {k1}, {k1, k3}, {k1, k2, k3}} {
		gone := acquireAll(t, a, k1, k2, k3).Attempt()
		want := error(nil)
		if len(lost) > 0 {
			s.remove(t, lost...)
		}
		if len(lost) == 3 {
			want = impls.ErrLost
		}
		recipetest.WantOutcome(t, "clean up", a.CleanupAll(t.Context(), []string{k1, k2, k3}, gone), want)
		s.there(t, 0, k1, k2, k3)
		recipetest.WantOutcome(t, "clean up again", a.CleanupAll(t.Context(), []string{k1, k2, k3}, gone), impls.ErrLost)
	}
}

// TestBatchHalfRefused: a script that the server stops at one key has not
// written another.
func TestBatchHalfRefused(t *testing.T) {
	s := serve(t)
	a := openBatch(t, s)
	k1, k2, k3 := newKeys()
	h := acquireAll(t, a, k1, k2, k3)
	s.remove(t, k2)
	if err := s.admin.RPush(t.Context(), k2, "foreign").Err(); err != nil {
		t.Fatal(err)
	}
	s.hasten(t, k1)
	recipetest.WantOutcome(t, "extend", h.Extend(t.Context()), impls.ErrFailed)
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), impls.ErrFailed)
	s.there(t, 3, k1, k2, k3)
	s.remove(t, k2)
	recipetest.WantOutcome(t, "release again", h.Release(t.Context()), impls.ErrLost)
	s.there(t, 0, k1, k2, k3)
}

// TestNoBatch: what is no batch is refused, and nothing is sent.
func TestNoBatch(t *testing.T) {
	s := serve(t)
	a := openBatch(t, s)
	k1, k2, _ := newKeys()
	for _, keys := range [][]string{nil, {k1, k2, k1}} {
		none := recipetest.NewAttempt()
		_, try := a.TryAcquireAll(t.Context(), keys, none)
		_, wait := a.AcquireAll(t.Context(), keys, none)
		for doing, err := range map[string]error{"try": try, "acquire": wait, "clean up": a.CleanupAll(t.Context(), keys, none)} {
			recipetest.WantOutcome(t, doing, err, impls.ErrFailed)
		}
	}
	s.there(t, 0, k1, k2)
}
