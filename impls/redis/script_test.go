package redis_test

import (
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/cluster/clustertest"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/impls/redis"
)

// TestScriptsForgotten: a server that lost its scripts, by a restart or a
// flush, serves the next call all the same.
func TestScriptsForgotten(t *testing.T) {
	c := clustertest.Start(t, "redis", "single")
	admin := goredis.NewClient(&goredis.Options{Addr: c.Addresses()[0]})
	defer admin.Close()
	r := redis.Recipes()[0]
	cl := recipetest.Open(t, r, recipetest.Config(c.Addresses(), c.Account(), 10*time.Second))
	key := recipetest.NewKey()
	h, err := cl.Acquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "acquire", err, nil)
	for _, call := range []struct {
		doing string
		do    func() error
	}{
		{"extend", func() error { return h.Extend(t.Context()) }},
		{"release", func() error { return h.Release(t.Context()) }},
		{"clean up", func() error {
			if err := cl.Cleanup(t.Context(), key, h.Attempt()); err != impls.ErrLost {
				return err
			}
			return nil
		}},
	} {
		if err := admin.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		recipetest.WantOutcome(t, call.doing, call.do(), nil)
	}
}

// TestRefusedByServer: what the server says it did not do, it did not do.
func TestRefusedByServer(t *testing.T) {
	c := clustertest.Start(t, "redis", "single")
	admin := goredis.NewClient(&goredis.Options{Addr: c.Addresses()[0]})
	defer admin.Close()
	cl := recipetest.Open(t, redis.Recipes()[0], recipetest.Config(c.Addresses(), c.Account(), 10*time.Second))
	key := recipetest.NewKey()
	set := func(name, value string) {
		if err := admin.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}

	set("maxmemory", "1")
	_, err := cl.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try without memory", err, impls.ErrFailed)
	set("maxmemory", "0")

	set("min-replicas-to-write", "1")
	_, err = cl.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try without replicas", err, impls.ErrFailed)
	set("min-replicas-to-write", "0")

	if n, err := admin.Exists(t.Context(), key).Result(); err != nil || n != 0 {
		t.Errorf("the key is there: %d, %v", n, err)
	}
	h, err := cl.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try", err, nil)
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
}
