package conformance_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/reference"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

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
		// A session that a machine under load cannot keep alive proves nothing.
		if r.Info().Bound == impls.BoundSession && ttl < 2 {
			continue
		}
		if err = r.CheckTTL(ttl*time.Second, lim); err == nil {
			return ttl * time.Second
		}
	}
	t.Fatal(err)
	return 0
}

// start starts servers. Their counters are summed over all of them; the
// cluster is nil for the reference server.
func start(t *testing.T, backend, topology string) (cfg impls.Config, lim impls.Limits, counters func() map[string]int64, c *cluster.Cluster) {
	t.Helper()
	if backend == "reference" {
		s := newReference(t)
		return impls.Config{Addresses: []string{s.path}}, impls.DefaultLimits(), s.Counters, nil
	}
	settings := map[string]string{}
	if backend == "zookeeper" {
		settings = clustertest.FastZooKeeper()
	}
	// Clients come and go, by the process, faster than a busy server lets go of
	// their connections.
	c = clustertest.StartSpec(t, cluster.Spec{Backend: backend, Topology: topology, Settings: settings, Clients: 500})
	return impls.Config{Addresses: c.Addresses(), Topology: topology, Directory: c.Directory(), Account: c.Account()}, c.Limits(), func() map[string]int64 {
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
	}, c
}
