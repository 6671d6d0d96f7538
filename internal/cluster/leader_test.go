package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// TestLeaderOfQuorum: while the leader is dead or paused there is none until the
// others have elected one; back again, the old leader follows.
func TestLeaderOfQuorum(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		backend  string
		nodes    int
		settings map[string]string
		write    func(t *testing.T, addresses []string)
	}{
		{"etcd", 3, nil, putEtcd},
		{"etcd", 5, nil, putEtcd},
		{"zookeeper", 3, clustertest.FastZooKeeper(), createZooKeeper},
		{"zookeeper", 5, clustertest.FastZooKeeper(), createZooKeeper},
	} {
		t.Run(fmt.Sprintf("%s-%d", tt.backend, tt.nodes), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			c := clustertest.StartSpec(t, cluster.Spec{Backend: tt.backend, Topology: "quorum", Nodes: tt.nodes, Settings: tt.settings})
			t.Logf("%d nodes ready after %d ms", len(c.Addresses()), c.Info().ReadyMS)
			for _, f := range []struct {
				out, back func(context.Context, int) error
			}{{c.Kill, c.Restart}, {c.Pause, c.Resume}} {
				old := leads(t, c, anyNode)
				if err := f.out(ctx, old); err != nil {
					t.Fatal(err)
				}
				if node, err := c.Leader(ctx); node == old || err != nil && !errors.Is(err, cluster.ErrNoLeader) {
					t.Errorf("with %d out node %d leads, %v", old, node, err)
				}
				now := leads(t, c, otherThan(old))
				tt.write(t, c.Addresses()[now:now+1])
				if err := f.back(ctx, old); err != nil {
					t.Fatal(err)
				}
				healthy(t, c)
				leads(t, c, anyNode)
			}
		})
	}
}

// TestNoMajority: the rest of a quorum has no leader.
func TestNoMajority(t *testing.T) {
	t.Parallel()
	for backend, settings := range map[string]map[string]string{"etcd": nil, "zookeeper": clustertest.FastZooKeeper()} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, backend, "quorum", settings)
			old := leads(t, c, anyNode)
			for i := range 3 {
				if i != old {
					if err := c.Kill(t.Context(), i); err != nil {
						t.Fatal(err)
					}
				}
			}
			// It takes a leader a while to notice that it is alone.
			await(t, "no leader", func() error {
				node, err := c.Leader(t.Context())
				if errors.Is(err, cluster.ErrNoLeader) {
					return nil
				}
				return fmt.Errorf("node %d leads, %w", node, err)
			})
		})
	}
}

// TestMoveLeader: etcd hands over on request, to a member that serves.
func TestMoveLeader(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "etcd", "quorum")
	before, err := c.Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		from, to, err := c.Failover(t.Context())
		if err != nil || from == to || to < 0 {
			t.Fatalf("from %d to %d: %v", from, to, err)
		}
	}
	if err := c.Healthy(t.Context()); err != nil {
		t.Errorf("healthy: %v", err)
	}
	after, err := c.Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range after {
		for name, v := range after[i].Counters {
			if v != before[i].Counters[name] {
				t.Errorf("%s of %s grew by our own questions", name, after[i].Node)
			}
		}
	}
	from := leads(t, c, anyNode)
	if err := c.Kill(t.Context(), (from+1)%3); err != nil {
		t.Fatal(err)
	}
	if _, to, err := c.Failover(t.Context()); err != nil || to != (from+2)%3 {
		t.Errorf("from %d to %d, with the one between dead: %v", from, to, err)
	}
}

// TestSingleLeads: one alone leads while it serves.
func TestSingleLeads(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "redis", "single")
	if node, err := c.Leader(t.Context()); err != nil || node != 0 {
		t.Errorf("node %d leads, %v", node, err)
	}
	if err := c.Pause(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Leader(t.Context()); !errors.Is(err, cluster.ErrNoLeader) || !strings.Contains(err.Error(), "paused") {
		t.Errorf("a paused one leads: %v", err)
	}
	if err := c.Kill(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Leader(t.Context()); !errors.Is(err, cluster.ErrNoLeader) {
		t.Errorf("a dead one leads: %v", err)
	}
}

// TestUnsupported: actions that a topology does not have return an error, and are
// not tried.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	leader := func(c *cluster.Cluster) error { _, err := c.Leader(ctx); return err }
	failover := func(c *cluster.Cluster) error { _, _, err := c.Failover(ctx); return err }
	promote := func(c *cluster.Cluster) error { return c.Promote(ctx, 0) }
	fence := func(c *cluster.Cluster) error { return c.Fence(ctx, 0) }
	for _, tt := range []struct {
		backend, topology string
		lacks             map[string]func(*cluster.Cluster) error
	}{
		{"memcached", "sharded", map[string]func(*cluster.Cluster) error{"leader": leader, "failover": failover, "promote": promote}},
		{"redis", "quorum", map[string]func(*cluster.Cluster) error{"leader": leader, "promote": promote}},
		{"redis", "single", map[string]func(*cluster.Cluster) error{"failover": failover}},
		{"mysql", "single", map[string]func(*cluster.Cluster) error{"failover": failover, "promote": promote, "fence": fence}},
	} {
		c := clustertest.Start(t, tt.backend, tt.topology)
		for name, do := range tt.lacks {
			if err := do(c); !errors.Is(err, cluster.ErrUnsupported) {
				t.Errorf("%s of a %s %s: %v", name, tt.backend, tt.topology, err)
			}
		}
	}
}

// TestSharded: three independent servers.
func TestSharded(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "memcached", "sharded")
	if len(c.Addresses()) != 3 {
		t.Fatalf("addresses %v", c.Addresses())
	}
	for _, a := range c.Addresses() {
		talkTo(t, a, "add a 0 0 1\r\n1\r\n", "STORED")
	}
	list, err := c.Counters(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("counters %v, %v", list, err)
	}
	for _, n := range list {
		if n.Counters["cmd_set"] != 1 || n.Follower {
			t.Errorf("%+v", n)
		}
	}
	if err := c.Kill(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	talkTo(t, c.Addresses()[0], "get a\r\n", "VALUE")
	if err := c.Restart(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	talkTo(t, c.Addresses()[1], "get a\r\n", "END")
	if err := c.Healthy(t.Context()); err != nil {
		t.Errorf("healthy: %v", err)
	}
}

// TestPause: a paused server stops with all its threads, answers no client until
// it goes on, and has lost no data.
func TestPause(t *testing.T) {
	t.Parallel()
	for backend, settings := range map[string]map[string]string{
		"redis": nil, "memcached": nil, "etcd": nil, "mysql": nil, "zookeeper": clustertest.FastZooKeeper(),
	} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			c := clustertest.Start(t, backend, "single", settings)
			n := c.Nodes()[0]
			for range 20 {
				for range 2 { // a second time changes nothing
					if err := c.Pause(ctx, 0); err != nil {
						t.Fatal(err)
					}
				}
				if state, err := n.Process.State(); err != nil || state != 'T' {
					t.Fatalf("paused, its state is %c, %v", state, err)
				}
				before, err := c.CPU()
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Healthy(ctx); !errors.Is(err, cluster.ErrServer) || !strings.Contains(err.Error(), "paused") {
					t.Errorf("healthy: %v", err)
				}
				if after, err := c.CPU(); err != nil || after != before {
					t.Errorf("it worked from %v to %v, %v", before, after, err)
				}
				for range 2 {
					if err := c.Resume(ctx, 0); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := c.Healthy(ctx); err != nil {
				t.Errorf("healthy: %v", err)
			}
			if after := c.Nodes()[0]; after.Process.PID() != n.Process.PID() {
				t.Error("it is another process")
			}
			// A paused server can be killed, and a stopped cluster does not wait
			// for one.
			if err := c.Pause(ctx, 0); err != nil {
				t.Fatal(err)
			}
			if err := c.Restart(ctx, 0); !errors.Is(err, cluster.ErrServer) {
				t.Errorf("restart of a paused one: %v", err)
			}
			if err := c.Stop(ctx); err != nil {
				t.Error(err)
			}
			if lives(n.Process.PID()) {
				t.Error("it lives on after Stop")
			}
			if err := c.Pause(ctx, 0); !errors.Is(err, cluster.ErrStopped) {
				t.Errorf("pause after Stop: %v", err)
			}
		})
	}
}

// TestPauseErrors: dead nodes, and nodes that do not exist.
func TestPauseErrors(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := clustertest.Start(t, "memcached", "single")
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.Pause(over, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("pause with a context that is over: %v", err)
	}
	if err := c.Healthy(ctx); err != nil {
		t.Errorf("it was paused nevertheless: %v", err)
	}
	if err := c.Kill(ctx, 0); err != nil {
		t.Fatal(err)
	}
	for _, do := range []func(context.Context, int) error{c.Pause, c.Resume} {
		if err := do(ctx, 0); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("of a dead one: %v", err)
		}
		if err := do(ctx, 1); !errors.Is(err, cluster.ErrSpec) {
			t.Errorf("of none: %v", err)
		}
	}
}

// TestPausedByOthers: a stop that came from outside is seen as ours is.
func TestPausedByOthers(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "redis", "quorum")
	if err := c.Nodes()[3].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(t, "the stop", func() error {
		if err := c.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), "redis-4: server failed: it is paused") {
			return fmt.Errorf("healthy: %w", err)
		}
		return nil
	})
	if err := c.Resume(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if err := c.Healthy(t.Context()); err != nil {
		t.Errorf("healthy: %v", err)
	}
}
