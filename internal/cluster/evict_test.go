package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// TestRedisEvicts: a lock is evicted before its TTL ends, the next client gets it,
// and neither fillers nor settings of ours remain.
func TestRedisEvicts(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"", "volatile-ttl", "allkeys-lru", "allkeys-random"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			settings := map[string]string{}
			if policy != "" {
				settings["maxmemory-policy"] = policy
			}
			c := clustertest.Start(t, "redis", "single", settings)
			if err := c.Can("evict"); err != nil {
				t.Error(err)
			}
			talk(t, c, "SET lock a NX PX 600000\r\n", "+OK")
			before := configured(t, c)
			how, err := c.Evict(t.Context(), 0, "lock")
			if err != nil {
				t.Fatal(err)
			}
			t.Log(how)
			talk(t, c, "SET lock b NX PX 600000\r\n", "+OK")
			talk(t, c, "DBSIZE\r\n", ":1")
			if after := configured(t, c); !maps.Equal(before, after) {
				t.Errorf("the settings were %v and are %v", before, after)
			}
			if err := c.Healthy(t.Context()); err != nil {
				t.Error(err)
			}
			if got := counters(t, c); got["set"] != 2 || got["del"] != 0 || got["config|set"] != 0 || got["subscribe"] != 0 || got["exists"] != 0 {
				t.Errorf("clients' requests: %v", got)
			}
		})
	}
}

func configured(t *testing.T, c *cluster.Cluster) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range []string{"maxmemory", "maxmemory-policy", "notify-keyspace-events"} {
		all[name] = lines(t, c.Addresses()[0], "CONFIG GET "+name+"\r\n", 5)
	}
	return all
}

// TestRedisKeeps: a key that the policy does not evict stays, and so do the
// settings.
func TestRedisKeeps(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "redis", "single")
	if how, err := c.Evict(t.Context(), 0, "lock"); !errors.Is(err, cluster.ErrNotEvicted) {
		t.Errorf("a key that is not there: %q, %v", how, err)
	}
	talk(t, c, "SET lock a NX\r\n", "+OK") // it has no TTL
	before := configured(t, c)
	if how, err := c.Evict(t.Context(), 0, "lock"); !errors.Is(err, cluster.ErrNotEvicted) || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("a key without a TTL: %q, %v", how, err)
	}
	talk(t, c, "GET lock\r\n", "$1")
	talk(t, c, "DBSIZE\r\n", ":1")
	if after := configured(t, c); !maps.Equal(before, after) {
		t.Errorf("the settings were %v and are %v", before, after)
	}

	never := clustertest.Start(t, "redis", "single", map[string]string{"maxmemory-policy": "noeviction"})
	talk(t, never, "SET lock a NX PX 600000\r\n", "+OK")
	if _, err := never.Evict(t.Context(), 0, "lock"); !errors.Is(err, cluster.ErrUnsupported) || !strings.Contains(err.Error(), "noeviction") {
		t.Errorf("a server that never evicts: %v", err)
	}
	talk(t, never, "GET lock\r\n", "$1")
}

// TestMemcachedEvicts: the same, for locks of several sizes.
func TestMemcachedEvicts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		size     int
		settings map[string]string
	}{{"small", 12, map[string]string{"m": "4"}}, {"large", 500, map[string]string{"m": "8"}}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, "memcached", "single", tt.settings)
			add := fmt.Sprintf("add lock 0 600 %d\r\n%s\r\n", tt.size, strings.Repeat("x", tt.size))
			talk(t, c, add, "STORED")
			began := time.Now()
			how, err := c.Evict(t.Context(), 0, "lock")
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, in %v", how, time.Since(began))
			talk(t, c, add, "STORED")
			got := counters(t, c)
			if got["cmd_set"] != 2 || got["cmd_delete"] != 0 || got["delete_hits"] != 0 || got["delete_misses"] != 0 || got["curr_items"] != 1 {
				t.Errorf("clients' requests: %v", got)
			}
			if err := c.Healthy(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMemcachedKeeps: a missing key cannot be evicted, and a server that refuses
// writes when it is full evicts nothing.
func TestMemcachedKeeps(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "memcached", "single", map[string]string{"M": ""})
	talk(t, c, "add lock 0 600 1\r\n1\r\n", "STORED")
	if _, err := c.Evict(t.Context(), 0, "lock"); !errors.Is(err, cluster.ErrUnsupported) || !strings.Contains(err.Error(), "flag M") {
		t.Errorf("a server that never evicts: %v", err)
	}
	talk(t, c, "add lock 0 600 1\r\n1\r\n", "NOT_STORED")

	c = clustertest.Start(t, "memcached", "single")
	if how, err := c.Evict(t.Context(), 0, "lock"); !errors.Is(err, cluster.ErrNotEvicted) {
		t.Errorf("a key that is not there: %q, %v", how, err)
	}
}

// TestMemcachedEvictsWhatIsWanted: a lock that other clients request all the time
// is evicted, too, and the client that requests it gets it.
func TestMemcachedEvictsWhatIsWanted(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "memcached", "single", map[string]string{"m": "4"})
	talk(t, c, "add lock 0 600 1\r\n1\r\n", "STORED")
	conn, r := dialTalk(t, c.Addresses()[0])
	defer conn.Close()
	granted := make(chan error, 1)
	go func() {
		for {
			fmt.Fprint(conn, "add lock 0 600 1\r\n2\r\n")
			switch answer, err := r.ReadString('\n'); {
			case err != nil:
				granted <- err
				return
			case answer == "STORED\r\n":
				granted <- nil
				return
			}
		}
	}()
	if _, err := c.Evict(t.Context(), 0, "lock"); err != nil {
		t.Fatal(err)
	}
	if err := <-granted; err != nil {
		t.Error(err)
	}
}

// TestEvictionGivenUp: a context that ends the filling does not end the removal of
// the fillers.
func TestEvictionGivenUp(t *testing.T) {
	t.Parallel()
	for backend, tt := range map[string]struct{ lock, filled, none string }{
		"redis":     {"SET lock a NX PX 600000\r\n", "DBSIZE\r\n", ":1"},
		"memcached": {"add lock 0 600 1\r\n1\r\n", "mg lockbench-filler-00000010\r\n", "EN"},
	} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			// Of allkeys-lfu a key that is used often is the last to go.
			c := clustertest.Start(t, backend, "single", map[string]map[string]string{"redis": {"maxmemory-policy": "allkeys-lfu"}}[backend])
			talk(t, c, tt.lock, "")
			if backend == "redis" {
				lines(t, c.Addresses()[0], strings.Repeat("GET lock\r\n", 5000), 10000)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { _, err := c.Evict(ctx, 0, "lock"); ended <- err }()
			for filled := tt.none; filled == tt.none; filled = line(t, c, tt.filled) {
				select {
				case err := <-ended:
					t.Fatalf("over before it could be given up: %v", err)
				default:
				}
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("given up: %v", err)
			}
			talk(t, c, tt.filled, tt.none)
			if err := c.Healthy(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
