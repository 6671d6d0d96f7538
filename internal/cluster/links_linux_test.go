package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
	"github.com/lockbench/lockbench/internal/faultnet"
)

var cutOff = faultnet.Rule{CutIn: true, CutOut: true}

// throughProxies fails the test if servers talk past the proxies.
func throughProxies(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	if past, err := c.Bypasses(); err != nil || len(past) > 0 {
		t.Errorf("past the proxies: %v, %v", past, err)
	}
}

func cut(t *testing.T, c *cluster.Cluster, id string, side []int, rule faultnet.Rule) {
	t.Helper()
	if how, err := c.CutLinks(t.Context(), id, side, rule); err != nil || how != "proxies between servers" {
		t.Fatalf("%q, %v", how, err)
	}
}

func lift(t *testing.T, c *cluster.Cluster, id string) faultnet.Effect {
	t.Helper()
	e, err := c.LiftLinks(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestCutLeader: a leader that is cut off from its peers is replaced, and serves
// no client; back again, it follows. This also holds for five members, where a
// follower that is cut off with it does not help it.
func TestCutLeader(t *testing.T) {
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
	} {
		t.Run(fmt.Sprintf("%s-%d", tt.backend, tt.nodes), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			c := clustertest.StartSpec(t, cluster.Spec{Backend: tt.backend, Topology: "quorum", Nodes: tt.nodes, Settings: tt.settings, Links: true})
			t.Logf("%d nodes ready after %d ms", tt.nodes, c.Info().ReadyMS)
			throughProxies(t, c)
			old := leads(t, c, anyNode)
			side := []int{old}
			if tt.nodes == 5 {
				side = append(side, (old+1)%5)
			}
			cut(t, c, "a", side, cutOff)
			now := leads(t, c, func(node int) bool { return node != old && node != side[len(side)-1] })
			tt.write(t, c.Addresses()[now:now+1])
			for _, node := range side {
				await(t, "it serves no more", func() error {
					asked, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					if err := c.Serves(asked, node); err == nil {
						return fmt.Errorf("node %d serves", node)
					}
					return nil
				})
			}
			asked, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := c.Healthy(asked); !errors.Is(err, cluster.ErrServer) {
				t.Errorf("healthy: %v", err)
			}
			if e := lift(t, c, "a"); e.HeldBytes == 0 {
				t.Errorf("nothing was held back: %+v", e)
			}
			healthy(t, c)
			tt.write(t, c.Addresses()[old:old+1])
			throughProxies(t, c)
			if tt.nodes == 5 {
				return
			}

			// A member that is started again goes by its links too.
			now = leads(t, c, anyNode)
			if err := c.Kill(ctx, now); err != nil {
				t.Fatal(err)
			}
			leads(t, c, otherThan(now))
			if err := c.Restart(ctx, now); err != nil {
				t.Fatal(err)
			}
			healthy(t, c)
			throughProxies(t, c)
		})
	}
}

// TestCutMaster: a redis master that is cut off from its replicas and from the
// sentinels takes writes beside the one that they have chosen. Back again, it
// follows that one, and its writes are gone. Sentinels report the addresses that
// clients use.
func TestCutMaster(t *testing.T) {
	t.Parallel()
	c := clustertest.StartSpec(t, cluster.Spec{Backend: "redis", Topology: "replicated", Links: true, Settings: unhurried()})
	t.Logf("ready after %d ms", c.Info().ReadyMS)
	throughProxies(t, c)
	spread(t, c.Addresses()[0], "a")
	cut(t, c, "a", []int{0}, cutOff)
	hurry(t, c, true)
	now := leads(t, c, otherThan(0))
	hurry(t, c, false)
	talkTo(t, c.Addresses()[0], "SET lost 1\r\n", "+OK")
	talkTo(t, c.Addresses()[now], "SET kept 1\r\n", "+OK")
	for _, a := range c.Directory() {
		_, port, _ := strings.Cut(c.Addresses()[now], ":")
		if reply := replyOf(t, a, "SENTINEL GET-MASTER-ADDR-BY-NAME lockbench\r\n", 5); reply[2] != "127.0.0.1" || reply[4] != port {
			t.Errorf("%s names %q", a, reply)
		}
	}
	if e := lift(t, c, "a"); e.HeldBytes == 0 {
		t.Errorf("nothing was held back: %+v", e)
	}
	healthy(t, c)
	now = leads(t, c, anyNode)
	spread(t, c.Addresses()[now], "b")
	talkTo(t, c.Addresses()[0], "EXISTS lost\r\n", ":0")
	talkTo(t, c.Addresses()[0], "EXISTS a b kept\r\n", ":3")
	throughProxies(t, c)
}

// TestCutDirections: what one side sends is held back, and what the other sends
// is not, whichever of them has connected.
func TestCutDirections(t *testing.T) {
	t.Parallel()
	c := clustertest.StartSpec(t, cluster.Spec{Backend: "redis", Topology: "replicated", Links: true,
		Settings: unhurried()})
	for i, tt := range []struct {
		side []int
		rule faultnet.Rule
		gets bool // node 1, of what node 0 writes
	}{
		{[]int{1}, faultnet.Rule{CutIn: true}, false},
		{[]int{1}, faultnet.Rule{CutOut: true}, true},
		{[]int{0, 2}, faultnet.Rule{CutOut: true}, false},
		{[]int{0, 2}, faultnet.Rule{CutIn: true}, true},
		{[]int{2}, cutOff, true},
	} {
		key := fmt.Sprint("k", i)
		cut(t, c, key, tt.side, tt.rule)
		other := 2 // the one that gets it in any case
		if i == 4 {
			other = 1
		}
		talkTo(t, c.Addresses()[0], "SET "+key+" 1\r\n", "+OK")
		has := func(node int) func() error {
			return func() error {
				if got := replyOf(t, c.Addresses()[node], "EXISTS "+key+"\r\n", 1)[0]; got != ":1" {
					return fmt.Errorf("EXISTS is answered by %s", got)
				}
				return nil
			}
		}
		await(t, "the write at a replica", has(other))
		if tt.gets {
			await(t, "the write at the other", has(1))
		} else if has(1)() == nil {
			t.Errorf("%v: the write came through", tt)
		}
		lift(t, c, key)
		await(t, "the write at the other, after the heal", has(1))
		await(t, "the write at the third, after the heal", has(2))
	}
	throughProxies(t, c)
}

// TestCutErrors: links that cannot be cut return an error.
func TestCutErrors(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	direct := clustertest.Start(t, "mysql", "replicated")
	if past, err := direct.Bypasses(); err != nil || len(past) == 0 {
		t.Errorf("servers without proxies are not seen to talk past them: %v, %v", past, err)
	}
	shards := clustertest.Start(t, "memcached", "sharded")
	for c, why := range map[*cluster.Cluster]string{direct: "Spec.Links", shards: "do not talk"} {
		if _, err := c.CutLinks(ctx, "a", []int{0}, cutOff); !errors.Is(err, cluster.ErrUnsupported) || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %s", err, why)
		}
		if e := lift(t, c, "a"); e != (faultnet.Effect{}) {
			t.Errorf("lifted %+v", e)
		}
	}
	run := clustertest.Run(t)
	if _, err := cluster.Start(ctx, run, cluster.Spec{Backend: "redis", Topology: "quorum", Links: true}); !errors.Is(err, cluster.ErrSpec) || !strings.Contains(err.Error(), "do not talk") {
		t.Errorf("links of a redis quorum: %v", err)
	}
	c := clustertest.StartSpec(t, cluster.Spec{Backend: "mysql", Topology: "replicated", Links: true})
	for _, side := range [][]int{nil, {2}, {-1}, {0, 1}} {
		if _, err := c.CutLinks(ctx, "a", side, cutOff); !errors.Is(err, cluster.ErrSpec) {
			t.Errorf("side %v: %v", side, err)
		}
	}
	cut(t, c, "a", []int{0}, cutOff)
	if _, err := c.CutLinks(ctx, "a", []int{0}, cutOff); !errors.Is(err, cluster.ErrSpec) {
		t.Errorf("the same cut again: %v", err)
	}
	lift(t, c, "a")
	if e := lift(t, c, "a"); e != (faultnet.Effect{}) {
		t.Errorf("lifted again: %+v", e)
	}
	healthy(t, c)
	cut(t, c, "a", []int{1}, cutOff) // and a stop while something is cut
	if err := c.Stop(ctx); err != nil {
		t.Error(err)
	}
	if _, err := c.CutLinks(ctx, "b", []int{0}, cutOff); !errors.Is(err, cluster.ErrStopped) {
		t.Errorf("cut after Stop: %v", err)
	}
}
