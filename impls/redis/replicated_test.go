package redis_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/impls/redis"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// failing is a replicated server whose master can be taken away.
type failing struct {
	served
	cluster *cluster.Cluster
}

func serveReplicated(t *testing.T) failing {
	t.Helper()
	t.Parallel()
	// The sentinels take no server for dead, however busy the machine: see hurry.
	c := clustertest.Start(t, "redis", "replicated", map[string]string{"sentinel down-after-milliseconds": "600000"})
	cfg := recipetest.Config(c.Addresses(), c.Account(), ttl)
	cfg.Topology, cfg.Directory = "replicated", c.Directory()
	return failing{served{cfg, nil}, c}
}

// admin is an operator's way to a node.
func (f failing) node(t *testing.T, node int) *goredis.Client {
	t.Helper()
	admin := goredis.NewClient(&goredis.Options{Addr: f.cfg.Addresses[node]})
	t.Cleanup(func() { _ = admin.Close() })
	return admin
}

// hurry has the sentinels put another in the place of a master that is silent for
// a second.
func (f failing) hurry(t *testing.T) {
	t.Helper()
	for _, address := range f.cfg.Directory {
		admin := goredis.NewSentinelClient(&goredis.Options{Addr: address})
		if err := errors.Join(admin.Set(t.Context(), "lockbench", "down-after-milliseconds", "1000").Err(), admin.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// spread returns when the replicas have what the master has.
func (f failing) spread(t *testing.T, master int) {
	t.Helper()
	conn := f.node(t, master).Conn()
	defer conn.Close()
	if err := conn.Set(t.Context(), "spread", "", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Wait(t.Context(), 2, time.Minute).Result(); err != nil || n != 2 {
		t.Fatalf("%d replicas have it: %v", n, err)
	}
}

// TestReplicated: the clients find the master among the servers, and lock there.
func TestReplicated(t *testing.T) {
	f := serveReplicated(t)
	f.cfg.Addresses = nil // the sentinels return them
	for _, r := range redis.Recipes() {
		if !slices.Contains(r.Info().Topologies, "replicated") {
			continue
		}
		id := r.Info().ID
		t.Run(id, func(t *testing.T) {
			a, b, key := f.open(t, id), f.open(t, id), recipetest.NewKey()
			h := acquire(t, a, key)
			busy(t, b, key)
			got := going(t.Context(), b, key)
			release(t, h)
			recipetest.WantOutcome(t, "the waiter's acquire and release", <-got, nil)
			recipetest.WantOutcome(t, "clean-up of nothing", a.Cleanup(t.Context(), key, h.Attempt()), impls.ErrLost)
		})
	}
	for _, refused := range []func(*impls.Config){
		func(cfg *impls.Config) { cfg.Directory = nil },
		func(cfg *impls.Config) { cfg.Directory = []string{"127.0.0.1:1"} },
	} {
		cfg := f.cfg
		refused(&cfg)
		if c, err := recipe(t, "redis/token").Open(t.Context(), cfg); err == nil {
			t.Errorf("opened with the directory %v", cfg.Directory)
			_ = c.Close()
		}
	}
}

// TestSentinelNamesTheDead: a client that believes a sentinel which names a server
// that is not there, and goes on doing so, asks another.
func TestSentinelNamesTheDead(t *testing.T) {
	f := serveReplicated(t)
	c := f.open(t, "redis/token")
	names := func(sentinel int, port string) {
		t.Helper()
		admin := goredis.NewSentinelClient(&goredis.Options{Addr: f.cfg.Directory[sentinel]})
		defer admin.Close()
		if err := errors.Join(admin.Remove(t.Context(), "lockbench").Err(), admin.Monitor(t.Context(), "lockbench", "127.0.0.1", port, "2").Err()); err != nil {
			t.Fatal(err)
		}
	}
	for sentinel := range f.cfg.Directory {
		names(sentinel, "1") // no server listens there
	}
	for end := time.Now().Add(time.Minute); ; {
		key, a := recipetest.NewKey(), recipetest.NewAttempt()
		_, err := c.TryAcquire(t.Context(), key, a)
		if impls.As[*impls.ConnectError](err) {
			break // it believed them
		}
		_ = c.Cleanup(t.Context(), key, a)
		if time.Now().After(end) {
			t.Fatalf("the client never believed the sentinels, so this test shows nothing: %v", err)
		}
	}
	_, master, _ := net.SplitHostPort(f.cfg.Addresses[0])
	for sentinel := range f.cfg.Directory[1:] {
		names(1+sentinel, master)
	}
	release(t, recipetest.RetryUntilAcquired(t, c, recipetest.NewKey()))
}

// TestMasterKilled: locks that a replica has received outlive their master, and
// their holders see no loss; locks can be taken again.
func TestMasterKilled(t *testing.T) {
	f := serveReplicated(t)
	type held struct {
		client, other impls.Client
		hold          impls.Hold
	}
	var all []held
	for _, id := range scripted() {
		h := held{client: f.open(t, id), other: f.open(t, id)}
		h.hold = acquire(t, h.client, recipetest.NewKey())
		all = append(all, h)
	}
	f.spread(t, 0)
	if err := f.cluster.Kill(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	f.hurry(t)
	for _, h := range all {
		release(t, recipetest.RetryUntilAcquired(t, h.other, recipetest.NewKey()))
	}
	for i, h := range all {
		id := scripted()[i]
		busy(t, h.other, h.hold.Key())
		if id == "redis/watchdog" && isLost(h.hold) {
			t.Error("the watchdog took its lock for lost, which the new master has")
		}
		// The first try may still find the old master's end.
		recipetest.WantOutcome(t, id+": release", recipetest.Settle(t, h.hold), nil)
		release(t, acquire(t, h.other, h.hold.Key()))
	}
}

// TestMasterForgets: a lock that no replica has received is gone with the master. Its
// holder sees the loss, another client gets it, and with the same token.
func TestMasterForgets(t *testing.T) {
	f := serveReplicated(t)
	info := recipe(t, "redis/fenced").Info()
	if info.FencedOn("replicated") || !info.FencedOn("single") {
		t.Errorf("tokens are said to be sound on a replicated server: %t, on a single one: %t", info.FencedOn("replicated"), info.FencedOn("single"))
	}
	a, b, key := f.open(t, info.ID), f.open(t, info.ID), recipetest.NewKey()
	on := func(do func(context.Context, int) error, nodes ...int) {
		t.Helper()
		for _, node := range nodes {
			if err := do(t.Context(), node); err != nil {
				t.Fatal(err)
			}
		}
	}
	on(f.cluster.Kill, 1, 2)
	h := acquire(t, a, key)
	on(f.cluster.Kill, 0)
	on(f.cluster.Restart, 1, 2)
	f.hurry(t)
	other := recipetest.RetryUntilAcquired(t, b, key)
	if h.Fence() != other.Fence() {
		t.Errorf("tokens %d and %d: the counter was not forgotten", h.Fence(), other.Fence())
	}
	recipetest.WantOutcome(t, "release of what was forgotten", recipetest.Settle(t, h), impls.ErrLost)
	release(t, other)
}

// TestMasterMoves: clients leave a master that hands over while it serves on,
// and is made a replica only later.
func TestMasterMoves(t *testing.T) {
	f := serveReplicated(t)
	c, key := f.open(t, "redis/token"), recipetest.NewKey()
	h := acquire(t, c, key)
	f.spread(t, 0)
	_, to, err := f.cluster.Failover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	admin := f.node(t, to)
	for { // until what it does is seen at the new master
		other := recipetest.NewKey()
		got := recipetest.RetryUntilAcquired(t, c, other)
		n, err := admin.Exists(t.Context(), other).Result()
		if err != nil {
			t.Fatal(err)
		}
		_ = got.Release(t.Context())
		if n == 1 {
			break
		}
	}
	recipetest.WantOutcome(t, "release", recipetest.Settle(t, h), nil)
	if n, err := admin.Exists(t.Context(), key).Result(); err != nil || n != 0 {
		t.Errorf("released, and still there: %d, %v", n, err)
	}
}
