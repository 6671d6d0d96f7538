package redis_test

import (
	"testing"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

func openReentrant(t *testing.T, s served) impls.Reentrant {
	t.Helper()
	return s.open(t, "redis/reentrant").(impls.Reentrant)
}

func wantDepth(t *testing.T, c impls.Reentrant, key string, want int) {
	t.Helper()
	if got := c.Depth(key); got != want {
		t.Fatalf("the client counts %d holds, want %d", got, want)
	}
}

// TestReentrantOrder: holds are released in any order, and the lock is free
// when the last is.
func TestReentrantOrder(t *testing.T) {
	s := serve(t)
	for _, order := range [][3]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		a, b, key := openReentrant(t, s), openReentrant(t, s), recipetest.NewKey()
		var holds [3]impls.Hold
		for i := range holds {
			holds[i] = acquire(t, a, key)
			wantDepth(t, a, key, i+1)
		}
		for left, i := range order {
			busy(t, b, key)
			release(t, holds[i])
			wantDepth(t, a, key, 2-left)
		}
		s.there(t, 0, key)
		release(t, acquire(t, b, key))
		for _, h := range holds {
			recipetest.WantOutcome(t, "release again", h.Release(t.Context()), impls.ErrLost)
		}
	}
}

// TestReentrantTTL: each entry and each extension begins the TTL of the whole
// lock anew, and a release leaves it in force.
func TestReentrantTTL(t *testing.T) {
	s := serve(t)
	c, key := openReentrant(t, s), recipetest.NewKey()
	outer := acquire(t, c, key)
	s.hasten(t, key)
	inner := acquire(t, c, key)
	s.renewed(t, key)
	s.hasten(t, key)
	recipetest.WantOutcome(t, "extend the outer hold", outer.Extend(t.Context()), nil)
	s.renewed(t, key)
	release(t, inner)
	s.renewed(t, key)
	recipetest.WantOutcome(t, "extend what was released", inner.Extend(t.Context()), impls.ErrLost)
	release(t, outer)
}

// TestReentrantCleanup: a clean-up takes away what one acquire left, and none
// of the holds around it.
func TestReentrantCleanup(t *testing.T) {
	s := serve(t)
	a, b, key := openReentrant(t, s), openReentrant(t, s), recipetest.NewKey()
	outer := acquire(t, a, key)
	// An answer that was lost is not read.
	lost := recipetest.NewAttempt()
	_, err := a.TryAcquire(t.Context(), key, lost)
	recipetest.WantOutcome(t, "try", err, nil)
	recipetest.WantOutcome(t, "clean up", a.Cleanup(t.Context(), key, lost), nil)
	recipetest.WantOutcome(t, "clean up again", a.Cleanup(t.Context(), key, lost), impls.ErrLost)
	wantDepth(t, a, key, 1)
	busy(t, b, key)
	// And the other way round: the outer one's release is in doubt.
	inner := acquire(t, a, key)
	recipetest.WantOutcome(t, "clean up the outer", a.Cleanup(t.Context(), key, outer.Attempt()), nil)
	wantDepth(t, a, key, 1)
	busy(t, b, key)
	release(t, inner)
	release(t, acquire(t, b, key))
}

// TestReentrantExpired: what ran out is lost, whatever the client was granted
// since, and nothing that is lost takes the new hold along.
func TestReentrantExpired(t *testing.T) {
	s := serve(t)
	a, b, key := openReentrant(t, s), openReentrant(t, s), recipetest.NewKey()
	outer, inner := acquire(t, a, key), acquire(t, a, key)
	s.remove(t, key)
	other := acquire(t, b, key)
	busy(t, a, key)
	recipetest.WantOutcome(t, "extend", outer.Extend(t.Context()), impls.ErrLost)
	wantDepth(t, a, key, 1)
	release(t, other)
	again := acquire(t, a, key)
	recipetest.WantOutcome(t, "release what was lost before", inner.Release(t.Context()), impls.ErrLost)
	wantDepth(t, a, key, 1)
	busy(t, b, key)
	release(t, again)
	wantDepth(t, a, key, 0)
}
