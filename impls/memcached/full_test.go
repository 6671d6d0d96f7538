package memcached_test

import (
	"errors"
	"testing"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// TestFullServer: who is refused for want of room knows that he has nothing, and
// takes nothing from who has the lock. A release that writes is refused as well,
// and can be made when there is room again.
func TestFullServer(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "memcached", "single", map[string]string{"M": "", "m": "8"})
	cfg := recipetest.Config(c.Addresses(), c.Account(), ttl)
	for id, released := range map[string]error{"memcached/cas": impls.ErrFailed, addDelete: nil, timestamp: nil} {
		holder, other := recipetest.Open(t, recipe(t, id), cfg), recipetest.Open(t, recipe(t, id), cfg)
		key := recipetest.NewKey()
		h := recipetest.Try(t, holder, key)
		if _, err := c.Fill(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		a := recipetest.NewAttempt()
		_, err := other.TryAcquire(t.Context(), key, a)
		recipetest.WantOutcome(t, id+" when full", err, impls.ErrFailed)
		if err := other.Cleanup(t.Context(), key, a); err != nil && !errors.Is(err, impls.ErrLost) {
			t.Errorf("%s: clean up: %v", id, err)
		}
		err = h.Release(t.Context())
		recipetest.WantOutcome(t, id+" released when full", err, released)
		if err := c.Drain(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if released != nil {
			recipetest.WantOutcome(t, id+" released", h.Release(t.Context()), nil)
		}
		recipetest.Try(t, other, key)
	}
}
