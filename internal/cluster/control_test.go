package cluster_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// TestKillAndRestart: a killed server is gone and named in the error; one that is
// started again has its old address and the data that its kind keeps.
func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		backend  string
		settings map[string]string
		write    func(t *testing.T, c *cluster.Cluster)
		read     func(t *testing.T, c *cluster.Cluster)
	}{
		{"redis", map[string]string{"appendonly": "yes", "appendfsync": "always"},
			func(t *testing.T, c *cluster.Cluster) { talk(t, c, "SET a 1\r\n", "+OK") },
			func(t *testing.T, c *cluster.Cluster) { talk(t, c, "EXISTS a\r\n", ":1") }},
		{"memcached", nil,
			func(t *testing.T, c *cluster.Cluster) { talk(t, c, "add a 0 0 1\r\n1\r\n", "STORED") },
			func(t *testing.T, c *cluster.Cluster) { talk(t, c, "add a 0 0 1\r\n1\r\n", "STORED") }}, // it forgot
		{"etcd", nil,
			func(t *testing.T, c *cluster.Cluster) { putEtcd(t, c.Addresses()) },
			func(t *testing.T, c *cluster.Cluster) { getEtcd(t, c.Addresses()) }},
		{"zookeeper", clustertest.FastZooKeeper(),
			func(t *testing.T, c *cluster.Cluster) { createZooKeeper(t, c.Addresses()) },
			func(t *testing.T, c *cluster.Cluster) { existsZooKeeper(t, c.Addresses()) }},
		{"mysql", nil, useMySQL, func(t *testing.T, c *cluster.Cluster) {
			db := sqlAt(t, c, 0)
			defer db.Close()
			var a int
			if err := db.QueryRowContext(t.Context(), "SELECT a FROM t").Scan(&a); err != nil || a != 1 {
				t.Errorf("the row: %d, %v", a, err)
			}
		}},
	} {
		t.Run(tt.backend, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			c := clustertest.Start(t, tt.backend, "single", tt.settings)
			before := c.Nodes()[0]
			if err := c.Restart(ctx, 0); !errors.Is(err, cluster.ErrServer) || !strings.Contains(err.Error(), before.Name) {
				t.Errorf("restart of one that is alive: %v", err)
			}
			tt.write(t, c)
			for range 2 { // what was started again can be killed again
				if err := c.Kill(ctx, 0); err != nil {
					t.Fatal(err)
				}
				if lives(c.Nodes()[0].Process.PID()) {
					t.Error("killed, and it lives")
				}
				if err := c.Healthy(ctx); !errors.Is(err, cluster.ErrServer) || !strings.Contains(err.Error(), before.Name) {
					t.Errorf("healthy with its server dead: %v", err)
				}
				if err := c.Kill(ctx, 0); !errors.Is(err, os.ErrProcessDone) {
					t.Errorf("kill of a dead one: %v", err)
				}
				if err := c.Restart(ctx, 0); err != nil {
					t.Fatal(err)
				}
				if err := c.Healthy(ctx); err != nil {
					t.Errorf("healthy: %v", err)
				}
				tt.read(t, c)
			}
			after := c.Nodes()[0]
			if after.Address != before.Address || after.Name != before.Name || after.Process.PID() == before.Process.PID() {
				t.Errorf("%+v was started again as %+v", before, after)
			}
			if info := c.Info().Nodes[0]; info.PID != after.Process.PID() || len(info.Command) == 0 {
				t.Errorf("the information is of %+v", info)
			}
			counters(t, c)
			if _, err := c.CPU(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMinorityKilled: without a minority the others serve, and the dead serve
// again when they are back.
func TestMinorityKilled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		backend  string
		settings map[string]string
		dead     []int
		write    func(t *testing.T, addresses []string)
	}{
		{"etcd", nil, []int{1}, putEtcd},
		{"zookeeper", clustertest.FastZooKeeper(), []int{2}, createZooKeeper},
		{"redis", nil, []int{0, 3}, func(t *testing.T, addresses []string) {
			for _, a := range addresses {
				talkTo(t, a, "SET a 1\r\n", "+OK")
			}
		}},
	} {
		t.Run(tt.backend, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, tt.backend, "quorum", tt.settings)
			addresses := c.Addresses()
			var alive, dead []string
			for i, n := range c.Nodes() {
				alive = append(alive, n.Address)
				for _, d := range tt.dead {
					if i == d {
						alive = alive[:len(alive)-1]
						dead = append(dead, n.Address)
						if err := c.Kill(t.Context(), d); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			err := c.Healthy(t.Context())
			if !errors.Is(err, cluster.ErrServer) {
				t.Errorf("healthy with %v dead: %v", tt.dead, err)
			}
			for _, d := range tt.dead {
				if !strings.Contains(err.Error(), c.Nodes()[d].Name+": ") {
					t.Errorf("%v does not name %s", err, c.Nodes()[d].Name)
				}
			}
			tt.write(t, alive)
			for _, d := range tt.dead {
				if err := c.Restart(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Healthy(t.Context()); err != nil {
				t.Errorf("healthy: %v", err)
			}
			tt.write(t, dead)
			if got := c.Addresses(); strings.Join(got, " ") != strings.Join(addresses, " ") {
				t.Errorf("addresses went from %v to %v", addresses, got)
			}
		})
	}
}

// TestRedisQuorum: the masters are independent of one another, five unless
// three are asked for.
func TestRedisQuorum(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 3} {
		c := clustertest.StartSpec(t, cluster.Spec{Backend: "redis", Topology: "quorum", Nodes: n})
		if n == 0 {
			n = 5
		}
		if len(c.Addresses()) != n || len(c.Info().Nodes) != n {
			t.Errorf("%d nodes: %v", n, c.Addresses())
		}
		for _, a := range c.Addresses() {
			talkTo(t, a, "INCR a\r\n", ":1")
			talkTo(t, a, "WAIT 0 0\r\n", ":0")
		}
	}
}

// TestMajorityComesBack: members that need one another are started side by
// side.
func TestMajorityComesBack(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "etcd", "quorum")
	putEtcd(t, c.Addresses())
	for i := range c.Nodes() {
		if err := c.Kill(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			if err := c.Restart(t.Context(), i); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	getEtcd(t, c.Addresses()[:2])
	if err := c.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), c.Nodes()[2].Name) {
		t.Errorf("healthy with one dead: %v", err)
	}
}

// TestStopEndsRestart: a member without its majority never serves; stopping the
// cluster does not wait for it, and nothing starts after that.
func TestStopEndsRestart(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "etcd", "quorum")
	for i := range c.Nodes() {
		if err := c.Kill(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	restarted := make(chan error, 1)
	go func() { restarted <- c.Restart(context.Background(), 0) }()
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-restarted; err == nil {
		t.Error("a member alone came up")
	}
	for _, do := range []func(context.Context, int) error{c.Kill, c.Restart} {
		if err := do(t.Context(), 0); !errors.Is(err, cluster.ErrStopped) {
			t.Errorf("after Stop: %v", err)
		}
	}
}

// TestControlErrors: the error for a node that does not start again has the
// reason, and the node may start when the reason is gone.
func TestControlErrors(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "redis", "single")
	for _, i := range []int{-1, 1} {
		for _, do := range []func(context.Context, int) error{c.Kill, c.Restart} {
			if err := do(t.Context(), i); !errors.Is(err, cluster.ErrSpec) {
				t.Errorf("node %d: %v", i, err)
			}
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Kill(over, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("kill with a context that is over: %v", err)
	}
	if err := c.Healthy(t.Context()); err != nil {
		t.Errorf("it was killed nevertheless: %v", err)
	}
	if err := c.Kill(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	thief := listen(t, c.Addresses()[0])
	if err := c.Restart(t.Context(), 0); !errors.Is(err, cluster.ErrServer) || !strings.Contains(err.Error(), "already in use") {
		t.Errorf("restart on a port that is taken: %v", err)
	}
	thief.Close()
	if err := c.Restart(t.Context(), 0); err != nil {
		t.Errorf("restart: %v", err)
	}
}

func dialEtcd(t *testing.T, addresses []string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: addresses, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func putEtcd(t *testing.T, addresses []string) {
	t.Helper()
	if _, err := dialEtcd(t, addresses).Put(t.Context(), "kept", "1"); err != nil {
		t.Fatal(err)
	}
}

func getEtcd(t *testing.T, addresses []string) {
	t.Helper()
	got, err := dialEtcd(t, addresses).Get(t.Context(), "kept")
	if err != nil || got.Count != 1 {
		t.Errorf("the key is not there: %v, %v", got, err)
	}
}

func createZooKeeper(t *testing.T, addresses []string) {
	t.Helper()
	conn := openZooKeeper(t, addresses)
	defer conn.Close()
	if _, err := conn.Create("/kept", nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		t.Fatal(err)
	}
}

func existsZooKeeper(t *testing.T, addresses []string) {
	t.Helper()
	conn := openZooKeeper(t, addresses)
	defer conn.Close()
	if found, _, err := conn.Exists("/kept"); err != nil || !found {
		t.Errorf("the node is there: %t, %v", found, err)
	}
}
