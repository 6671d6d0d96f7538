package run

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/scenario"
)

// The faults that servers support, and what they keep through them, decide which
// faults a suite may have and what is expected then.
func TestFactsOfServersUnderFaults(t *testing.T) {
	aof := map[string]string{"appendonly": "yes", "appendfsync": "always"}
	for _, c := range []struct {
		recipe, topology, fault string
		settings                map[string]string
		cannot                  string // why; "": it can
		keeps                   bool
	}{
		{"redis/token", "single", "holder-cut", nil, "", true},
		{"redis/token", "single", "leader-restart", nil, "", false},
		{"redis/token", "single", "leader-restart", aof, "", true},
		{"redis/token", "single", "leader-pause", nil, "", true},
		{"redis/token", "single", "leader-clock", nil, "", false},
		{"redis/token", "single", "leader-evict", nil, "", false},
		{"redis/token", "single", "leader-full", nil, "", true},
		{"memcached/cas", "single", "leader-full", nil, "flag M", true},
		{"memcached/cas", "single", "leader-full", map[string]string{"M": ""}, "", true},
		{"etcd/mutex", "quorum", "node:2-full", nil, "", true},
		{"redis/token", "single", "leader-cut", nil, "use cut-clients", false},
		{"redis/token", "single", "leader-cut-clients", nil, "", true},
		{"redis/token", "single", "leader-slow-disk", nil, "appendonly", true},
		{"redis/token", "replicated", "leader-pause", nil, "", false},
		{"redis/token", "replicated", "leader-kill", aof, "", false},
		{"redis/token", "replicated", "follower-pause", nil, "", true},
		{"redis/redlock", "quorum", "leader-kill", nil, "no server leads", false},
		{"redis/redlock", "quorum", "minority-pause", nil, "", true},
		{"redis/redlock", "quorum", "minority-kill", nil, "", false},
		{"etcd/mutex", "quorum", "leader-kill", nil, "", true},
		{"etcd/mutex", "quorum", "all-restart", nil, "", true},
		{"etcd/mutex", "quorum", "leader-cut-peers", nil, "", true},
		{"etcd/mutex", "quorum", "leader-flush", nil, "no command", false},
		{"zookeeper/sequence", "quorum", "leader-clock", nil, "", true},
		{"memcached/cas", "single", "leader-restart", nil, "", false},
		{"memcached/cas", "single", "leader-slow-disk", nil, "nothing to disk", true},
		{"mysql/lease-row", "single", "leader-restart", nil, "", true},
		{"mysql/lease-row", "single", "leader-clock", nil, "", false},
		{"mysql/lease-row", "galera", "leader-pause", nil, "no server leads", true},
		{"mysql/lease-row", "galera", "leader-flush", nil, "no command", false},
		{"reference/mutex", "single", "leader-kill", nil, "no server to hit", false},
		{"reference/mutex", "single", "holder-pause", nil, "", true},
	} {
		r, ok := all.Find(c.recipe)
		k, known := chaos.ParseKind(c.fault)
		if !ok || !known {
			t.Fatalf("no %s, or no %s", c.recipe, c.fault)
		}
		f := Facts(r)
		switch err := f.CanFault(c.topology, k, c.settings); {
		case c.cannot == "" && err != nil:
			t.Errorf("%s on %s %v: %v", c.fault, c.topology, c.settings, err)
		case c.cannot != "" && (err == nil || !strings.Contains(err.Error(), c.cannot)):
			t.Errorf("%s on a %s of %s: %v, want %q in it", c.fault, c.topology, c.recipe, err, c.cannot)
		}
		if !k.OnClient() && c.cannot == "" && keeps(f, c.topology, k, c.settings) != c.keeps {
			t.Errorf("%s on a %s of %s keeps the locks: %v, want %v", c.fault, c.topology, c.recipe, !c.keeps, c.keeps)
		}
	}
}

// A suite may name the servers that there will be, and no others.
func TestFactsOfTheNumberOfServers(t *testing.T) {
	for _, c := range []struct {
		recipe, topology string
		nodes            int
	}{
		{"redis/token", "single", 1}, {"redis/redlock", "quorum", 5}, {"etcd/mutex", "quorum", 3},
		{"mysql/lease-row", "galera", 3}, {"redis/token", "nowhere", 0}, {"reference/mutex", "single", 0},
	} {
		r, ok := all.Find(c.recipe)
		if !ok {
			t.Fatalf("no recipe %s", c.recipe)
		}
		if got := Facts(r).Nodes(c.topology); got != c.nodes {
			t.Errorf("%s on %s: %d servers, want %d", c.recipe, c.topology, got, c.nodes)
		}
	}
}

// Whose client can lock again is known before it is opened.
func TestFactsOfReentrance(t *testing.T) {
	for id, want := range map[string]bool{
		"redis/reentrant": true, "mysql/insert-reentrant": true, "mysql/insert-reentrant-count": true,
		"redis/token": false, "mysql/insert": false, "etcd/mutex": false,
	} {
		r, ok := all.Find(id)
		if !ok {
			t.Fatalf("no recipe %s", id)
		}
		if got := Facts(r).Reenters; got != want {
			t.Errorf("%s: %v", id, got)
		}
	}
}

// keeps reports whether a fault on servers leaves the default expectation of a
// recipe as it is, but for liveness.
func keeps(f scenario.RecipeFacts, topology string, k scenario.FaultKind, settings map[string]string) bool {
	servers := f.Guarantees(topology, settings)
	f.Bound = "ttl"
	e := k.Action.Expect(scenario.Situation{Kind: k, Recipe: f, Servers: &servers, Calm: scenario.Expect{Promise: scenario.Kept},
		Scenario: scenario.Scenario{TTL: scenario.Duration(time.Hour)}})
	return e.Promise == scenario.Kept
}
