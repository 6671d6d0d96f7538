package redis_test

import (
	"testing"

	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// TestFencedCounter: the counter outlives the lock, has no end of its own, and
// counts grants only.
func TestFencedCounter(t *testing.T) {
	s := serve(t)
	a, b, key := s.open(t, "redis/fenced"), s.open(t, "redis/fenced"), recipetest.NewKey()
	for want := range uint64(3) {
		h := acquire(t, a, key)
		if h.Fence() != want+1 {
			t.Errorf("token %d, want %d", h.Fence(), want+1)
		}
		busy(t, b, key)
		if want == 1 {
			s.remove(t, key) // as if it had expired
		} else {
			release(t, h)
		}
	}
	if left, err := s.admin.TTL(t.Context(), "{"+key+"}:fence").Result(); err != nil || left != -1 {
		t.Errorf("the counter has %v to live (%v), want no end", left, err)
	}
}

// TestFencedForgets: a server that forgets its counter gives tokens again. This
// is how the recipe fails, and why it wants every write kept.
func TestFencedForgets(t *testing.T) {
	s := serve(t)
	c, key := s.open(t, "redis/fenced"), recipetest.NewKey()
	first := acquire(t, c, key)
	if err := s.admin.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	second := acquire(t, c, key)
	if first.Fence() != second.Fence() {
		t.Errorf("tokens %d and %d: the server remembered", first.Fence(), second.Fence())
	}
	release(t, second)
}
