package conformance_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/lockbench/lockbench/cluster/clustertest"
	"github.com/lockbench/lockbench/conformance"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/impls/reference"
)

// wrong names the recipes that are wrong on purpose; what they must be caught
// at is tested apart.
func wrong(id string) bool { return id == "reference/broken" }

// TestRecipes runs the suite on every recipe and topology, on real servers.
func TestRecipes(t *testing.T) {
	t.Parallel()
	type place struct{ backend, topology string }
	groups := map[place][]impls.Recipe{}
	for _, r := range all.Recipes() {
		if wrong(r.Info().ID) {
			continue
		}
		for _, topology := range r.Info().Topologies {
			p := place{r.Info().Backend, topology}
			groups[p] = append(groups[p], r)
		}
	}
	for p, recipes := range groups {
		t.Run(p.backend+"/"+p.topology, func(t *testing.T) {
			t.Parallel()
			cfg, lim, counters := serve(t, p.backend, p.topology)
			for _, r := range recipes {
				t.Run(r.Info().ID+"/cost", func(t *testing.T) {
					cfg := cfg
					cfg.TTL = 10 * time.Second
					conformance.Cost(t, conformance.Subject{Recipe: r, Config: cfg}, counters)
				})
			}
			for _, r := range recipes {
				t.Run(r.Info().ID, func(t *testing.T) {
					t.Parallel()
					cfg := cfg
					cfg.TTL = shortest(t, r, lim)
					conformance.Run(t, conformance.Subject{Recipe: r, Config: cfg})
				})
			}
		})
	}
}

// serve starts servers. Their counters are summed over all of them.
func serve(t *testing.T, backend, topology string) (cfg impls.Config, lim impls.Limits, counters func() map[string]int64) {
	t.Helper()
	if backend == "reference" {
		s := newReference(t)
		return impls.Config{Addresses: []string{s.path}}, impls.DefaultLimits(), s.Counters
	}
	settings := map[string]string{}
	if backend == "zookeeper" {
		settings = clustertest.FastZooKeeper()
	}
	c := clustertest.Start(t, backend, topology, settings)
	return impls.Config{Addresses: c.Addresses(), Account: c.Account()}, c.Limits(), func() map[string]int64 {
		nodes, err := c.Counters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sum := map[string]int64{}
		for _, n := range nodes {
			for name, v := range n.Counters {
				sum[name] += v
			}
		}
		return sum
	}
}

// served is a reference server and where it listens.
type served struct {
	*reference.Server
	path string
}

func newReference(t *testing.T) served {
	t.Helper()
	path := filepath.Join(clustertest.Run(t).Dir(), "reference.sock")
	s, err := reference.NewServer(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return served{s, path}
}

// shortest is the shortest TTL that the recipe can be served with, of those
// that leave a busy machine time to breathe.
func shortest(t *testing.T, r impls.Recipe, lim impls.Limits) time.Duration {
	t.Helper()
	var err error
	for _, ttl := range []time.Duration{1, 2, 3, 4, 5, 6} {
		if err = r.CheckTTL(ttl*time.Second, lim); err == nil {
			return ttl * time.Second
		}
	}
	t.Fatal(err)
	return 0
}
