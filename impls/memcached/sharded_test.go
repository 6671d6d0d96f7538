package memcached_test

import (
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/impls/memcached"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// TestSharded: all clients look for a key on the same server. The death of one
// takes its keys, and nothing else: those of the others are held and can be
// locked, and its own again once it is back.
func TestSharded(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "memcached", "sharded")
	cfg := recipetest.Config(c.Addresses(), c.Account(), ttl)
	if _, err := recipe(t, "memcached/cas").Open(t.Context(), cfg); err == nil {
		t.Error("opened on several servers without the sharded topology")
	}
	cfg.Topology = "sharded"
	const each = 24 // of all recipes' keys together, none of a server's is too rare to happen
	type locked struct {
		id     string
		a, b   impls.Client
		holds  []impls.Hold
		server []int
	}
	var all []locked
	for _, r := range memcached.Recipes() {
		l := locked{id: r.Info().ID, a: recipetest.Open(t, r, cfg), b: recipetest.Open(t, r, cfg)}
		for len(l.holds) < each {
			h := recipetest.Try(t, l.a, recipetest.NewKey())
			recipetest.Busy(t, l.b, h.Key())
			l.holds, l.server = append(l.holds, h), append(l.server, where(t, c.Addresses(), h.Key()))
		}
		all = append(all, l)
	}
	if err := c.Kill(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		for i, h := range l.holds {
			if l.server[i] == 1 {
				// No other server is asked in its place.
				_, err := l.b.TryAcquire(t.Context(), h.Key(), recipetest.NewAttempt())
				if err == nil {
					t.Errorf("%s: a key of the dead server was granted by another", l.id)
				}
				continue
			}
			recipetest.Busy(t, l.b, h.Key())
		}
	}
	if err := c.Restart(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, l := range all {
		for i, h := range l.holds {
			if l.server[i] == 1 {
				recipetest.WantOutcome(t, "release", recipetest.RetryUntilAcquired(t, l.b, h.Key()).Release(t.Context()), nil)
				recipetest.WantOutcome(t, l.id+": release of what was forgotten", recipetest.Settle(t, h), impls.ErrLost)
				continue
			}
			kept++
			recipetest.Busy(t, l.b, h.Key())
			release(t, h)
		}
	}
	if total := each * len(all); kept == 0 || kept == total {
		t.Errorf("of %d keys, %d were not on the server that was killed", total, kept)
	}
}

// where is the one server that has key, by its index.
func where(t *testing.T, addresses []string, key string) int {
	t.Helper()
	at := -1
	for i, address := range addresses {
		admin := memcache.New(address)
		_, err := admin.Get(key)
		_ = admin.Close()
		switch {
		case err == memcache.ErrCacheMiss:
		case err != nil:
			t.Fatal(err)
		case at >= 0:
			t.Fatalf("%s is on several servers", key)
		default:
			at = i
		}
	}
	if at < 0 {
		t.Fatalf("%s is on no server", key)
	}
	return at
}
