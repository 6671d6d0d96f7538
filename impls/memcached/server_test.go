package memcached_test

import (
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/impls/memcached"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// ttl is longer than any of these tests takes.
const ttl = time.Minute

// served is a server, and an operator's way to it.
type served struct {
	cfg   impls.Config
	admin *memcache.Client
}

// serve starts a server for the test, which runs beside others.
func serve(t *testing.T) served {
	t.Helper()
	t.Parallel()
	c := clustertest.Start(t, "memcached", "single")
	admin := memcache.New(c.Addresses()[0])
	admin.Timeout = 10 * time.Second
	t.Cleanup(func() { _ = admin.Close() })
	return served{recipetest.Config(c.Addresses(), c.Account(), ttl), admin}
}

// open opens a client of the recipe, with options such as a clock.
func (s served) open(t *testing.T, id string, options ...func(*impls.Config)) impls.Client {
	t.Helper()
	return recipetest.Open(t, recipe(t, id), s.cfg, options...)
}

func recipe(t *testing.T, id string) impls.Recipe {
	t.Helper()
	return recipetest.Find(t, memcached.Recipes(), id)
}

// value is what key holds; "" if it is not there.
func (s served) value(t *testing.T, key string) string {
	t.Helper()
	item, err := s.admin.Get(key)
	if err == memcache.ErrCacheMiss {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(item.Value)
}

// lapse takes key away, as its expiry would, or an eviction.
func (s served) lapse(t *testing.T, key string) {
	t.Helper()
	if err := s.admin.Delete(key); err != nil {
		t.Fatal(err)
	}
}

// with sets the client's clock, dialing its dialer and stepping its steps.
func with(clock impls.Clock) func(*impls.Config) {
	return func(cfg *impls.Config) { cfg.Clock = clock }
}

func dialing(dial impls.DialFunc) func(*impls.Config) {
	return func(cfg *impls.Config) {
		if dial != nil {
			cfg.Dial = dial
		}
	}
}

func stepping(steps impls.Steps) func(*impls.Config) {
	return func(cfg *impls.Config) { cfg.Steps = steps }
}

func release(t *testing.T, h impls.Hold) {
	t.Helper()
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
}
