package cluster_test

import (
	"errors"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// fill fills a node's space, and checks how the server rejected the write.
func fill(t *testing.T, c *cluster.Cluster, node int, want string) {
	t.Helper()
	if err := c.Can("full"); err != nil {
		t.Error(err)
	}
	began := time.Now()
	how, err := c.Fill(t.Context(), node)
	if err != nil || !strings.Contains(how, want) {
		t.Fatalf("%q, %v; want %q", how, err, want)
	}
	t.Logf("%s, in %v", how, time.Since(began))
}

// drain frees the space, twice: the second call has nothing to end.
func drain(t *testing.T, c *cluster.Cluster, node int) {
	t.Helper()
	for range 2 {
		if err := c.Drain(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRedisFull: new locks are refused all the time, those that are held are kept,
// renewed and released, and afterwards everything is as it was. A redis that may
// evict does not.
func TestRedisFull(t *testing.T) {
	t.Parallel()
	const compare = "if redis.call('GET',KEYS[1])~='a' then return 0 end return redis.call('PEXPIRE',KEYS[1],600000)"
	for name, settings := range map[string]map[string]string{
		"as it is": nil, "may evict": {"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, "redis", "single", settings)
			talk(t, c, "SET lock a NX PX 600000\r\n", "+OK")
			before := configured(t, c)
			fill(t, c, 0, "OOM")
			talk(t, c, "SET other b NX PX 600000\r\n", "-OOM")
			talk(t, c, "SET lock b NX PX 600000\r\n", "-OOM")
			talk(t, c, "EVAL \""+compare+"\" 1 lock\r\n", ":1")
			talk(t, c, "DBSIZE\r\n", ":1")
			talk(t, c, "DEL lock\r\n", ":1")
			talk(t, c, "SET lock b NX PX 600000\r\n", "-OOM")
			drain(t, c, 0)
			talk(t, c, "SET lock b NX PX 600000\r\n", "+OK")
			talk(t, c, "DBSIZE\r\n", ":1")
			if after := configured(t, c); !maps.Equal(before, after) {
				t.Errorf("the settings were %v and are %v", before, after)
			}
			healthy(t, c)
			if got := counters(t, c); got["set"] != 2 || got["del"] != 1 || got["config|set"] != 0 {
				t.Errorf("clients' requests: %v", got)
			}
		})
	}
}

// TestMemcachedFull: held locks stay and can be deleted, writes that need space
// are refused, even if they replace an item; in a second round as in the first.
func TestMemcachedFull(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "memcached", "single", map[string]string{"M": "", "m": "8"})
	for _, lock := range []string{"short", strings.Repeat("long", 50)} {
		talk(t, c, "add "+lock+" 0 600 12\r\n123456789012\r\n", "STORED")
		fill(t, c, 0, "SERVER_ERROR out of memory")
		talk(t, c, "add "+lock+" 0 600 12\r\n123456789012\r\n", "SERVER_ERROR")
		talk(t, c, "mg "+lock+"\r\n", "HD")
		talk(t, c, "add other 0 600 1\r\n1\r\n", "SERVER_ERROR")
		talk(t, c, "delete "+lock+"\r\n", "DELETED")
		drain(t, c, 0)
		talk(t, c, "mg "+lock+"\r\n", "EN")
	}
	healthy(t, c)
	if got := counters(t, c); got["cmd_set"] != 2 || got["delete_hits"] != 2 || got["delete_misses"] != 0 || got["curr_items"] != 0 || got["evictions"] != 0 {
		t.Errorf("clients' requests: %v", got)
	}
}

// TestEtcdFull: when one member is full all members refuse writes, and a member
// that dies meanwhile leaves nothing behind.
func TestEtcdFull(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "etcd", "quorum")
	ctx, client := t.Context(), dialEtcd(t, c.Addresses()[:2])
	lease, err := client.Grant(ctx, 600)
	if err != nil {
		t.Fatal(err)
	}
	putEtcd(t, c.Addresses())
	fill(t, c, 2, "etcd-3")
	if _, err := client.Put(ctx, "kept", "2"); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("a put: %v", err)
	}
	if _, err := client.Grant(ctx, 600); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("a lease: %v", err)
	}
	if _, err := client.KeepAliveOnce(ctx, lease.ID); err != nil {
		t.Errorf("a lease that is kept: %v", err)
	}
	getEtcd(t, c.Addresses())
	if _, err := client.Delete(ctx, "kept"); err != nil {
		t.Errorf("a release: %v", err)
	}
	if err := c.Healthy(ctx); err == nil {
		t.Error("it is healthy, and full")
	}
	if err := c.Kill(ctx, 2); err != nil {
		t.Fatal(err)
	}
	drain(t, c, 2)
	if _, err := client.Put(ctx, "kept", "3"); err != nil {
		t.Errorf("a put afterwards: %v", err)
	}
	if err := c.Restart(ctx, 2); err != nil {
		t.Fatal(err)
	}
	healthy(t, c)
}

// TestEtcdFullCounts: our requests are not counted as clients' requests.
func TestEtcdFullCounts(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "etcd", "single")
	fill(t, c, 0, "database space exceeded")
	drain(t, c, 0)
	for method, n := range counters(t, c) {
		if n != 0 {
			t.Errorf("clients' requests: %d of %s", n, method)
		}
	}
}

// TestNotFull: a server that refuses nothing for lack of space does not count as
// full, and the attempt leaves nothing behind.
func TestNotFull(t *testing.T) {
	t.Parallel()
	t.Run("replica", func(t *testing.T) {
		t.Parallel()
		c := clustertest.Start(t, "redis", "replicated")
		lead, err := c.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		replica := (lead + 1) % 3
		if how, err := c.Fill(t.Context(), replica); !errors.Is(err, cluster.ErrNotFull) || !strings.Contains(err.Error(), "READONLY") {
			t.Errorf("a replica: %q, %v", how, err)
		}
		drain(t, c, replica)
		if got := lines(t, c.Addresses()[replica], "CONFIG GET maxmemory\r\n", 5); !strings.HasSuffix(got, "\n0") {
			t.Errorf("it is left with %q", got)
		}
	})
	t.Run("evicts", func(t *testing.T) {
		t.Parallel()
		c := clustertest.Start(t, "memcached", "single")
		if how, err := c.Fill(t.Context(), 0); !errors.Is(err, cluster.ErrUnsupported) {
			t.Errorf("a memcached that evicts: %q, %v", how, err)
		}
		drain(t, c, 0)
		if got := counters(t, c); got["total_items"] != 0 {
			t.Errorf("it got %d items", got["total_items"])
		}
	})
	t.Run("dead", func(t *testing.T) {
		t.Parallel()
		c := clustertest.Start(t, "redis", "single")
		fill(t, c, 0, "OOM")
		if err := c.Kill(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if how, err := c.Fill(t.Context(), 0); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("a dead server: %q, %v", how, err)
		}
		drain(t, c, 0)
		if err := c.Restart(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		talk(t, c, "SET lock a NX\r\n", "+OK")
	})
}
