package all_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/all"
)

// TestCatalogue: what users and suites rely on by name is there, and every recipe
// describes itself in full.
func TestCatalogue(t *testing.T) {
	for _, id := range []string{
		"redis/token", "redis/watchdog", "redis/pubsub", "redis/fenced", "redis/reentrant", "redis/batch", "redis/redlock", "redis/setnx-expire", "redis/getset",
		"etcd/mutex", "etcd/client-mutex", "etcd/single-key",
		"zookeeper/sequence", "zookeeper/read-write", "zookeeper/client-lock", "zookeeper/exclusive-node", "zookeeper/watch-children",
		"memcached/cas", "memcached/add-delete", "memcached/timestamp",
		"mysql/lease-row", "mysql/get-lock", "mysql/for-update", "mysql/for-update-no-index",
		"mysql/insert", "mysql/insert-reaper", "mysql/insert-reentrant", "mysql/insert-reentrant-count",
		"reference/mutex", "reference/broken",
	} {
		if _, ok := all.Find(id); !ok {
			t.Errorf("%s is missing", id)
		}
	}
	seen := map[string]bool{}
	for _, r := range all.Recipes() {
		i := r.Info()
		if seen[i.ID] {
			t.Errorf("%s is there twice", i.ID)
		}
		seen[i.ID] = true
		if backend, name, ok := strings.Cut(i.ID, "/"); !ok || backend != i.Backend || name == "" {
			t.Errorf("id %q does not begin with its backend %q", i.ID, i.Backend)
		}
		if i.Summary == "" || i.Promise == "" || i.Document == "" || len(i.Topologies) == 0 || i.RoundTrips == 0 || len(i.Requests) == 0 || len(i.Properties) == 0 {
			t.Errorf("%s leaves something unsaid: %+v", i.ID, i)
		}
		for _, p := range i.Properties {
			if !slices.ContainsFunc(impls.Properties(), func(known impls.PropertyInfo) bool { return known.Property == p }) {
				t.Errorf("%s has a property %q that there is not", i.ID, p)
			}
		}
		for _, topology := range slices.Concat(i.Unfenced, i.AvailableOn) {
			if !slices.Contains(i.Topologies, topology) {
				t.Errorf("%s says something of %q, where it does not run", i.ID, topology)
			}
		}
		if at := slices.Index(i.Steps, impls.StepRenewing); at >= 0 && (at != len(i.Steps)-1 || i.Bound != impls.BoundSession) {
			t.Errorf("%s, of bound %s, has the steps %v: renewals are of sessions, and come last", i.ID, i.Bound, i.Steps)
		}
		switch i.Bound {
		case impls.BoundTTL, impls.BoundSession, impls.BoundConnection, impls.BoundNone:
		default:
			t.Errorf("%s: bound %q", i.ID, i.Bound)
		}
		if (i.Takeover == nil) != (i.Bound == impls.BoundNone) {
			t.Errorf("%s: bound %s, and a takeover bound: %t", i.ID, i.Bound, i.Takeover != nil)
		}
		if i.Bound.Leased() && i.Takeover(4*time.Second) < 4*time.Second {
			t.Errorf("%s takes over after %v, before the TTL of 4s is over", i.ID, i.Takeover(4*time.Second))
		}
		// What cannot be served is said before a client is opened.
		if i.Bound.Leased() {
			for _, ttl := range []time.Duration{0, -time.Second} {
				if r.CheckTTL(ttl, impls.DefaultLimits()) == nil {
					t.Errorf("%s takes a TTL of %v", i.ID, ttl)
				}
			}
			if err := r.CheckTTL(4*time.Second, impls.DefaultLimits()); err != nil {
				t.Errorf("%s does not take a TTL of 4s: %v", i.ID, err)
			}
		}
	}
}

// The reports show the size of each recipe, found by the name of its file.
func TestCodeLines(t *testing.T) {
	for _, r := range all.Recipes() {
		i := r.Info()
		own, shared := impls.CodeLines(i.ID)
		if i.Backend == "reference" {
			if own != 0 || shared != 0 {
				t.Errorf("%s is a control and has %d own and %d shared lines, want none", i.ID, own, shared)
			}
		} else if own < 25 || shared < 25 {
			t.Errorf("%s: %d own and %d shared lines: name its file after the recipe, without hyphens", i.ID, own, shared)
		}
	}
}

func TestTTLsThatServersWouldChange(t *testing.T) {
	for _, c := range []struct {
		id    string
		ttl   time.Duration
		lim   impls.Limits
		taken bool
	}{
		{"etcd/mutex", time.Second, impls.DefaultLimits(), false},
		{"etcd/mutex", 2 * time.Second, impls.DefaultLimits(), true},
		{"etcd/mutex", 2500 * time.Millisecond, impls.DefaultLimits(), false},
		{"etcd/mutex", 2 * time.Second, impls.Limits{ElectionTimeout: 2 * time.Second}, false},
		{"etcd/mutex", 3 * time.Second, impls.Limits{ElectionTimeout: 2 * time.Second}, true},
		{"etcd/mutex", time.Second, impls.Limits{ElectionTimeout: 500 * time.Millisecond}, true},
		{"zookeeper/sequence", 3999 * time.Millisecond, impls.DefaultLimits(), false},
		{"zookeeper/sequence", 4 * time.Second, impls.DefaultLimits(), true},
		{"zookeeper/sequence", 40 * time.Second, impls.DefaultLimits(), true},
		{"zookeeper/sequence", 41 * time.Second, impls.DefaultLimits(), false},
		{"zookeeper/sequence", time.Second, impls.Limits{TickTime: 500 * time.Millisecond}, true},
	} {
		r, ok := all.Find(c.id)
		if !ok {
			t.Fatalf("%s is missing", c.id)
		}
		if err := r.CheckTTL(c.ttl, c.lim); (err == nil) != c.taken {
			t.Errorf("%s, TTL %v, %+v: %v", c.id, c.ttl, c.lim, err)
		}
	}
}

// TestFailedOpen: a client that could not be opened is no client, not even one
// that is nil inside: closing it would panic.
func TestFailedOpen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, r := range all.Recipes() {
		for _, topology := range r.Info().Topologies {
			t.Run(r.Info().ID+" "+topology, func(t *testing.T) { failsToOpen(ctx, t, r, topology) })
		}
	}
}

func failsToOpen(ctx context.Context, t *testing.T, r impls.Recipe, topology string) {
	cfg := impls.Config{
		Topology: topology,
		Clock:    impls.SystemClock(), Wait: impls.NewUniform(0, 0, 1), TTL: 4 * time.Second, Timeout: 100 * time.Millisecond,
		Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no server") },
	}
	for range 5 {
		cfg.Addresses = append(cfg.Addresses, "127.0.0.1:1")
	}
	if topology == "single" {
		cfg.Addresses = cfg.Addresses[:1]
	}
	cfg.Directory = cfg.Addresses
	c, err := r.Open(ctx, cfg)
	switch {
	case err != nil && c != nil:
		t.Errorf("%v, and a client of type %T", err, c)
	case err == nil:
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}
