package redis_test

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/cluster/clustertest"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/impls/redis"
)

func TestOnServer(t *testing.T) {
	c := clustertest.Start(t, "redis", "single")
	for _, r := range redis.Recipes() {
		t.Run(r.Info().ID, func(t *testing.T) {
			recipetest.Mutex(t, r, recipetest.Config(c.Addresses(), c.Account(), 10*time.Second))
			recipetest.Leased(t, r, recipetest.Config(c.Addresses(), c.Account(), 500*time.Millisecond))
		})
	}
}

func TestRequests(t *testing.T) {
	c := clustertest.Start(t, "redis", "single")
	counters := func() map[string]int64 {
		nodes, err := c.Counters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return nodes[0].Counters
	}
	for _, r := range redis.Recipes() {
		t.Run(r.Info().ID, func(t *testing.T) {
			recipetest.Requests(t, r, recipetest.Config(c.Addresses(), c.Account(), 10*time.Second), counters)
		})
	}
}
