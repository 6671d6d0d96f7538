package zookeeper

import (
	"testing"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// arrivalsWake: where all waiters watch the list, a newcomer wakes those who
// wait as well.
func arrivalsWake(t *testing.T, addresses []string) {
	const key = "arrivals"
	h := acquire(t, openAs(t, watchChildren{}, addresses, nil), key)
	first, second := recipetest.NewGate(), recipetest.NewGate()
	a := acquiring(t, first, openAs(t, watchChildren{}, addresses, first).Acquire, key, recipetest.NewAttempt())
	b := acquiring(t, second, openAs(t, watchChildren{}, addresses, second).Acquire, key, recipetest.NewAttempt())
	first.Await(t, impls.StepWoken, 1)
	first.Await(t, impls.StepWaiting, 2)
	release(t, h)
	release(t, granted(t, <-a))
	release(t, granted(t, <-b))
}
