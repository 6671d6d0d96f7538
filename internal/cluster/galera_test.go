package cluster_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
	"github.com/lockbench/lockbench/internal/faultnet"
)

// trio starts three servers that are all written to, with a table.
func trio(t *testing.T, spec cluster.Spec) *cluster.Cluster {
	t.Helper()
	spec.Backend, spec.Topology = "mysql", "galera"
	c := clustertest.StartSpec(t, spec)
	if _, err := sqlAt(t, c, 0).ExecContext(t.Context(), "CREATE TABLE r (a INT PRIMARY KEY) ENGINE=InnoDB"); err != nil {
		t.Fatal(err)
	}
	everywhere(t, c, 1, 0, 1, 2)
	return c
}

// everywhere writes a row at each of some nodes, beginning with value, and waits
// until all of these have them all.
func everywhere(t *testing.T, c *cluster.Cluster, value int, nodes ...int) {
	t.Helper()
	for i, at := range nodes {
		await(t, fmt.Sprintf("node %d takes a write", at), func() error { return written(write(t, c, at, value+i)) })
	}
	for _, at := range nodes {
		for i := range nodes {
			arrives(t, c, at, value+i)
		}
	}
}

// The server's answers to a write.
const (
	notReady  = 1047 // it is not in the group
	duplicate = 1062 // the row is there, by an attempt that ended in doubt
	conflict  = 1213 // another node's write was first
)

func answers(err error, number uint16) bool {
	e, ok := errors.AsType[*mysqldriver.MySQLError](err)
	return ok && e.Number == number
}

func written(err error) error {
	if answers(err, duplicate) {
		return nil
	}
	return err
}

// outside waits until a node takes no statements.
func outside(t *testing.T, c *cluster.Cluster, node int) {
	t.Helper()
	await(t, fmt.Sprintf("node %d is alone", node), func() error {
		if err := write(t, c, node, 10000); !answers(err, notReady) {
			return fmt.Errorf("a write to node %d: %w", node, err)
		}
		return nil
	})
}

// TestGalera: all nodes have the writes of one; there is no leader; of two clients
// that change a row at two nodes at once only one succeeds; a paused node is
// removed from the group and comes back.
func TestGalera(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := trio(t, cluster.Spec{})
	info := c.Info()
	t.Logf("ready after %d ms: %v; %s", info.ReadyMS, info.Settings, info.Durability)
	if len(c.Addresses()) != 3 || info.Settings["evs.suspect_timeout"] != "PT2S" || info.Settings["binlog_format"] != "ROW" {
		t.Errorf("nodes %v, settings %v", c.Addresses(), info.Settings)
	}
	healthy(t, c)
	for what, err := range map[string]error{
		"leader": second(c.Leader(ctx)), "promote": c.Promote(ctx, 1), "fence": c.Fence(ctx, 0),
		"move": third(c.Failover(ctx)),
	} {
		if !errors.Is(err, cluster.ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}

	// Counters do not separate replicated writes from requests of clients.
	if counters, err := c.Counters(ctx); err != nil || len(counters) != 3 || !counters[1].Follower || len(counters[1].Counters) != 0 {
		t.Errorf("counters %+v, %v", counters, err)
	}

	var wg sync.WaitGroup
	var mu sync.Mutex
	var done int
	for node := range 3 {
		wg.Go(func() {
			err := write(t, c, node, 77)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				done++
			case !answers(err, conflict) && !answers(err, duplicate):
				t.Errorf("node %d: %v", node, err)
			}
		})
	}
	wg.Wait()
	if done != 1 {
		t.Errorf("%d of three wrote the same row", done)
	}

	if err := c.Pause(ctx, 2); err != nil {
		t.Fatal(err)
	}
	everywhere(t, c, 100, 0, 1)
	if err := c.Resume(ctx, 2); err != nil {
		t.Fatal(err)
	}
	healthy(t, c)
	arrives(t, c, 2, 100)
}

func second[A any](_ A, err error) error { return err }

func third[A, B any](_ A, _ B, err error) error { return err }

// TestGaleraKill: with two nodes dead the third takes no statements, and goes on
// when they are back; after a crash of all nodes, acknowledged writes are there.
func TestGaleraKill(t *testing.T) {
	t.Parallel()
	c := trio(t, cluster.Spec{})
	for i, dead := range [][]int{{0, 2}, {0, 1, 2}} {
		for _, node := range dead {
			if err := c.Kill(t.Context(), node); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Healthy(t.Context()); !errors.Is(err, cluster.ErrServer) {
			t.Errorf("healthy without %v: %v", dead, err)
		}
		if len(dead) == 2 {
			outside(t, c, 1)
		}
		var wg sync.WaitGroup
		for _, node := range dead {
			wg.Go(func() {
				if err := c.Restart(t.Context(), node); err != nil {
					t.Errorf("restart %d of %v: %v", node, dead, err)
				}
			})
		}
		wg.Wait()
		healthy(t, c)
		for node := range 3 {
			for _, row := range []int{1, 2, 3} {
				arrives(t, c, node, row)
			}
		}
		everywhere(t, c, 1000+10*i, 0, 1, 2)
	}
}

// TestGaleraCut: a node cut off from the others takes no writes, and comes back;
// none of the links leads around the cut, not after a restart either.
func TestGaleraCut(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := trio(t, cluster.Spec{Links: true})
	if err := c.Kill(ctx, 1); err != nil {
		t.Fatal(err)
	}
	everywhere(t, c, 100, 0, 2)
	if err := c.Restart(ctx, 1); err != nil {
		t.Fatal(err)
	}
	healthy(t, c)
	if _, err := c.CutLinks(ctx, "cut", []int{1}, faultnet.Rule{CutIn: true, CutOut: true}); err != nil {
		t.Fatal(err)
	}
	outside(t, c, 1)
	everywhere(t, c, 200, 0, 2)
	outside(t, c, 1)
	if _, err := c.LiftLinks(ctx, "cut"); err != nil {
		t.Fatal(err)
	}
	healthy(t, c)
	arrives(t, c, 1, 200)
}
