package conformance_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/conformance"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/all"
)

// atATime is how many recipes are measured side by side: nearly all of it is
// waiting for leases to end, but processes have to start for it.
const atATime = 6

// calm is a TTL that every recipe can be served with, and that no slow machine
// outlasts.
const calm = 10 * time.Second

// TestRecipes measures every recipe, on a quorum if it can use one, and compares
// with what it promises, runs the checks of what it promises, and counts what it
// sends. How a client finds its server among others is its backend's, so that one
// recipe of each is measured there too. The recipes that are wrong on purpose are
// caught elsewhere.
func TestRecipes(t *testing.T) {
	t.Parallel()
	type place struct{ backend, topology string }
	groups := map[place][]impls.Recipe{}
	for _, r := range all.Recipes() {
		info := r.Info()
		if info.Broken {
			continue
		}
		own, shown := "", len(groups[place{info.Backend, "single"}]) > 0
		for _, topology := range info.Topologies {
			p := place{info.Backend, topology}
			switch {
			case topology == "single" || topology == "quorum":
				own = topology
			case slices.Contains(info.GrantsPerServer, topology):
				// It is no lock there, which the suite known-failures shows.
			case topology == "galera":
				// Two minutes, for groups that have formed again after each loss; the
				// recipes' own tests are on it.
			case !shown:
				groups[p] = append(groups[p], r)
			}
		}
		p := place{info.Backend, own}
		groups[p] = append(groups[p], r)
	}
	results := table{}
	t.Cleanup(func() { t.Logf("\n%s", results.String()) })
	slots := make(chan struct{}, atATime)
	for p, recipes := range groups {
		t.Run(p.backend+"/"+p.topology, func(t *testing.T) {
			t.Parallel()
			cfg, lim, counters, c := start(t, p.backend, p.topology)
			for _, r := range recipes {
				t.Run(r.Info().ID+"/cost", func(t *testing.T) {
					cfg := cfg
					cfg.TTL = calm
					conformance.Cost(t, conformance.Subject{Recipe: r, Config: cfg}, counters)
				})
			}
			subject := func(t *testing.T, r impls.Recipe) conformance.Subject {
				cfg := cfg
				cfg.TTL = shortest(t, r, lim)
				return conformance.Subject{Recipe: r, Config: cfg, CalmTTL: calm}
			}
			t.Run("checks", func(t *testing.T) {
				for _, r := range recipes {
					t.Run(r.Info().ID, func(t *testing.T) {
						t.Parallel()
						conformance.RunChecks(t, subject(t, r))
					})
				}
			})
			// Not as sub-tests, of which only as many run as there are CPUs.
			var measuring sync.WaitGroup
			for _, r := range recipes {
				s := subject(t, r)
				measuring.Go(func() {
					slots <- struct{}{}
					defer func() { <-slots }()
					results.compare(t, s, conformance.Except(impls.Available))
				})
			}
			measuring.Wait()
			// No other client may use the servers now.
			for _, r := range recipes {
				s := subject(t, r)
				if len(cfg.Addresses) > 1 && !r.Info().Promises(impls.Available) && !slices.Contains(r.Info().AvailableOn, p.topology) {
					continue // that it is not shows by nothing but waiting
				}
				if c != nil {
					s.Servers = c
				}
				results.compare(t, s, conformance.Only(impls.Available))
			}
		})
	}
}

// table collects findings. It is safe for concurrent use.
type table struct {
	mu   sync.Mutex
	rows map[string]map[impls.Property]conformance.Answer
}

// compare measures, and fails the test where the findings are not as promised.
func (tab *table) compare(t *testing.T, s conformance.Subject, which conformance.Option) {
	t.Helper()
	list, err := conformance.Measure(t.Context(), s, which)
	if err != nil {
		t.Error(err)
	}
	id := s.Recipe.Info().ID + " " + s.Config.Topology
	tab.mu.Lock()
	defer tab.mu.Unlock()
	for _, f := range list {
		if !f.AsPromised() {
			t.Errorf("%s is not as promised: %v", id, f)
		}
		if tab.rows == nil {
			tab.rows = map[string]map[impls.Property]conformance.Answer{}
		}
		if tab.rows[id] == nil {
			tab.rows[id] = map[impls.Property]conformance.Answer{}
		}
		tab.rows[id][f.Property] = f.Measured
	}
}

// String is the table, a line per recipe.
func (tab *table) String() string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%-38s", "")
	for _, p := range impls.Properties() {
		fmt.Fprintf(&b, " %s", p.Property)
	}
	ids := make([]string, 0, len(tab.rows))
	for id := range tab.rows {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		fmt.Fprintf(&b, "\n%-38s", id)
		for _, p := range impls.Properties() {
			fmt.Fprintf(&b, " %-*s", len(p.Property), tab.rows[id][p.Property])
		}
	}
	return b.String()
}

// TestHerd: a release wakes one waiter of a queue, all of a herd, and none that
// polls. Who is woken twice, by another's release or by being too late to
// watch, counts twice.
func TestHerd(t *testing.T) {
	t.Parallel()
	const waiters = 12
	for id, want := range map[string][2]float64{
		"reference/mutex":          {0, 0},
		"etcd/mutex":               {0.8, 1},
		"zookeeper/sequence":       {0.8, 1},
		"etcd/single-key":          {waiters / 2, 2 * waiters},
		"zookeeper/exclusive-node": {waiters / 2, 2 * waiters},
		"zookeeper/watch-children": {waiters / 2, 3 * waiters},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			r, _ := all.Find(id)
			cfg, _, _, _ := start(t, r.Info().Backend, "single")
			cfg.TTL = 10 * time.Second
			woken, err := conformance.Herd(t.Context(), conformance.Subject{Recipe: r, Config: cfg}, waiters)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("a release wakes %.1f of %d waiters", woken, waiters)
			if woken < want[0] || woken > want[1] {
				t.Errorf("a release wakes %.1f of %d waiters, want %v to %v", woken, waiters, want[0], want[1])
			}
		})
	}
}
