package cluster_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
	"github.com/lockbench/lockbench/internal/scenario"
)

// leads returns the node that leads, once one does.
func leads(t *testing.T, c *cluster.Cluster, which func(int) bool) int {
	t.Helper()
	var node int
	await(t, "a leader", func() error {
		var err error
		if node, err = c.Leader(t.Context()); err == nil && !which(node) {
			err = fmt.Errorf("node %d leads", node)
		}
		return err
	})
	return node
}

func anyNode(int) bool { return true }

func otherThan(old int) func(int) bool { return func(node int) bool { return node != old } }

// await calls holds until there is no error. The limit is long, so that it ends
// tests that hang, not slow ones.
func await(t *testing.T, what string, holds func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = holds(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

func healthy(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	await(t, "healthy", func() error { return c.Healthy(t.Context()) })
}

// unhurried are settings of sentinels that take no server for dead, however long a
// busy machine lets a server wait: the master stays the same.
func unhurried() map[string]string {
	return map[string]string{"sentinel down-after-milliseconds": "600000"}
}

// hurry sets the sentinels to fail over after one second, or not at all if hurried
// is false, so that a busy machine causes no failover.
func hurry(t *testing.T, c *cluster.Cluster, hurried bool) {
	t.Helper()
	after := unhurried()["sentinel down-after-milliseconds"]
	if hurried {
		after = "1000"
	}
	for _, a := range c.Directory() {
		talkTo(t, a, "SENTINEL SET lockbench down-after-milliseconds "+after+"\r\n", "+OK")
	}
}

// spread sets a key and waits until both replicas have it. (WAIT waits for writes
// of its own connection only.)
func spread(t *testing.T, address, key string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "SET %s 1\r\nWAIT 2 60000\r\n", key)
	answers := bufio.NewReader(conn)
	for _, want := range []string{"+OK\r\n", ":2\r\n"} {
		if line, err := answers.ReadString('\n'); err != nil || line != want {
			t.Fatalf("%s is answered by %q, %v; want %q", key, line, err, want)
		}
	}
}

// TestRedisReplicated: the sentinels find a master, replicas have its writes,
// and only the master's counters are reported.
func TestRedisReplicated(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "redis", "replicated", unhurried())
	info := c.Info()
	t.Logf("ready after %d ms: %v", info.ReadyMS, info.Settings)
	if len(c.Addresses()) != 3 || len(info.Nodes) != 6 || info.Nodes[2].Role != "" || info.Nodes[3].Role != scenario.RoleSentinel || len(c.Directory()) != 3 {
		t.Errorf("nodes %v, sentinels %v", c.Addresses(), c.Directory())
	}
	if err := c.Healthy(t.Context()); err != nil {
		t.Errorf("healthy: %v", err)
	}
	if node, err := c.Leader(t.Context()); err != nil || node != 0 {
		t.Errorf("node %d leads at first, %v", node, err)
	}
	for _, a := range c.Directory() {
		talkTo(t, a, "SENTINEL CKQUORUM lockbench\r\n", "+OK 3 usable")
	}
	spread(t, c.Addresses()[0], "a")
	for _, a := range c.Addresses()[1:] {
		talkTo(t, a, "EXISTS a\r\n", ":1")
		talkTo(t, a, "SET a 2\r\n", "-READONLY")
	}
	list, err := c.Counters(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("counters %v, %v", list, err)
	}
	for i, n := range list {
		if n.Follower != (i > 0) || n.Counters["set"] != int64(1-min(i, 1)) {
			t.Errorf("%s: follower %t, %v", n.Node, n.Follower, n.Counters)
		}
	}
	if cpu, err := c.CPU(); err != nil || cpu <= 0 {
		t.Errorf("CPU %v, %v", cpu, err)
	}
}

// TestRedisSettings: the sentinels' settings are the caller's too.
func TestRedisSettings(t *testing.T) {
	t.Parallel()
	set := map[string]string{"sentinel down-after-milliseconds": "700", "min-replicas-to-write": "1", "appendonly": "yes"}
	for _, tt := range []struct{ set, want map[string]string }{
		{nil, map[string]string{
			"sentinel down-after-milliseconds": "1000", "sentinel failover-timeout": "3000", "sentinel quorum": "2",
			"sentinel parallel-syncs": "1", "repl-diskless-sync-delay": "0", "min-replicas-to-write": "0",
		}},
		{set, set},
	} {
		c := clustertest.Start(t, "redis", "replicated", tt.set)
		for name, want := range tt.want {
			if got := c.Info().Settings[name]; got != want {
				t.Errorf("%s reads back %q, want %q", name, got, want)
			}
		}
	}
	run := clustertest.Run(t)
	_, err := cluster.Start(t.Context(), run, cluster.Spec{Backend: "redis", Topology: "replicated", Settings: map[string]string{"sentinel no-such-thing": "1"}})
	if !errors.Is(err, cluster.ErrServer) || !strings.Contains(err.Error(), "no-such-thing") {
		t.Errorf("a sentinel that cannot start: %v", err)
	}
}

// TestRedisFailover: after the kill or the pause of a master another one leads,
// and the old one follows it when it is back.
func TestRedisFailover(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"kill", "pause", "asked"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			c := clustertest.Start(t, "redis", "replicated", unhurried())
			spread(t, c.Addresses()[0], "a")
			old, back := 0, func() error { return nil }
			switch how {
			case "kill":
				if err := c.Kill(ctx, old); err != nil {
					t.Fatal(err)
				}
				back = func() error { return c.Restart(ctx, old) }
			case "pause":
				if err := c.Pause(ctx, old); err != nil {
					t.Fatal(err)
				}
				back = func() error { return c.Resume(ctx, old) }
			case "asked":
				from, to, err := c.Failover(ctx)
				if err != nil || from != old || to == old {
					t.Fatalf("from %d to %d: %v", from, to, err)
				}
			}
			if err := c.Healthy(ctx); how != "asked" && !errors.Is(err, cluster.ErrServer) {
				t.Errorf("healthy meanwhile: %v", err)
			}
			if how != "asked" {
				hurry(t, c, true)
			}
			now := leads(t, c, otherThan(old))
			hurry(t, c, false)
			talkTo(t, c.Addresses()[now], "EXISTS a\r\n", ":1")
			if err := back(); err != nil {
				t.Fatal(err)
			}
			healthy(t, c)
			// They may have elected once more before they got these settings.
			now = leads(t, c, anyNode)
			spread(t, c.Addresses()[now], "c")
			for _, a := range c.Addresses() {
				talkTo(t, a, "EXISTS a c\r\n", ":2")
			}
		})
	}
}

// TestDetachedReplica: a master beside the master is no healthy replica, until
// the sentinels have seen to it.
func TestDetachedReplica(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "redis", "replicated", unhurried())
	talkTo(t, c.Addresses()[2], "REPLICAOF NO ONE\r\n", "+OK")
	if err := c.Healthy(t.Context()); !errors.Is(err, cluster.ErrServer) {
		t.Errorf("healthy: %v", err)
	}
	if node, err := c.Leader(t.Context()); err != nil || node != 0 {
		t.Errorf("node %d leads, %v", node, err)
	}
	healthy(t, c)
	talkTo(t, c.Addresses()[2], "SET a 1\r\n", "-READONLY")
}
