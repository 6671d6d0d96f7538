package cluster_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
	"github.com/lockbench/lockbench/internal/container"
	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
	"github.com/lockbench/lockbench/internal/testenv"
)

// inContainers starts servers in containers, or skips the test where there is no
// engine with the image.
func inContainers(t *testing.T, spec cluster.Spec) *cluster.Cluster {
	t.Helper()
	testenv.NeedsServers(t, spec.Backend)
	run := clustertest.Run(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec.LogDir = t.TempDir()
	spec.Containers = &cluster.Containers{Helper: []string{self, "in-container"}}
	c, err := cluster.Start(t.Context(), run, spec)
	if errors.Is(err, cluster.ErrMissing) && os.Getenv("LOCKBENCH_TEST_DOCKER") == "" {
		t.Skipf("SKIPPED, NOTHING WAS TESTED IN CONTAINERS: %v; make test-docker runs this test", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		// All that the run has is gone, without the help of a sweep.
		this := func(dir string) bool { return dir == run.Dir() }
		if left, err := container.Sweep(t.Context(), this); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
	return c
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// Every topology serves in containers, and reports what it is.
func TestContainersServe(t *testing.T) {
	names := cluster.Backends()
	for _, name := range names {
		for _, topology := range cluster.Topologies(name) {
			t.Run(name+"/"+topology, func(t *testing.T) {
				// One topology of each backend is quick; make test-docker takes all.
				if topology != cluster.Topologies(name)[0] && os.Getenv("LOCKBENCH_TEST_DOCKER") == "" {
					t.Skip("SKIPPED, THIS TOPOLOGY WAS NOT TESTED IN CONTAINERS: make test-docker runs it")
				}
				c := inContainers(t, cluster.Spec{Backend: name, Topology: topology, Keeper: keeps(name, topology)})
				info := c.Info()
				if info.Environment != scenario.EnvDocker || info.Version == "" || strings.HasPrefix(c.Addresses()[0], "127.") {
					t.Errorf("%+v", info)
				}
				if err := c.Healthy(t.Context()); err != nil {
					t.Error(err)
				}
				if used, err := c.CPU(); err != nil || used <= 0 {
					t.Errorf("CPU time %v, %v", used, err)
				}
			})
		}
	}
}

func keeps(name, topology string) bool { return name == "mysql" && topology == "replicated" }

// A server in a container is killed, comes back with its address and its data,
// is paused and goes on.
func TestContainerFaults(t *testing.T) {
	ctx := t.Context()
	c := inContainers(t, cluster.Spec{Backend: "etcd"})
	putEtcd(t, c.Addresses())
	before := c.Nodes()[0]
	if err := c.Kill(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if before.Alive() {
		t.Error("it lives after Kill")
	}
	if err := c.Kill(ctx, 0); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("killed twice: %v", err)
	}
	if err := c.Restart(ctx, 0); err != nil {
		t.Fatal(err)
	}
	after := c.Nodes()[0]
	if after.Address != before.Address || after.Process.PID() == before.Process.PID() {
		t.Errorf("it came back as %v (%d), from %v (%d)", after.Address, after.Process.PID(), before.Address, before.Process.PID())
	}
	if err := c.Pause(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if !after.Paused() || !after.Alive() {
		t.Error("it is not paused, or dead")
	}
	if err := c.Healthy(ctx); !errors.Is(err, cluster.ErrServer) {
		t.Errorf("a paused server is healthy: %v", err)
	}
	if err := c.Resume(ctx, 0); err != nil {
		t.Fatal(err)
	}
	putEtcd(t, c.Addresses())
	// Killed while it is paused, it is dead and not paused.
	if err := c.Pause(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Kill(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Restart(ctx, 0); err != nil {
		t.Fatal(err)
	}
	putEtcd(t, c.Addresses())
	if err := c.Can(scenario.AbilityClock); !errors.Is(err, cluster.ErrUnsupported) {
		t.Errorf("a clock in a container: %v", err)
	}
}

// A leader that is cut off from the others loses its lead, also if it is started
// again meanwhile, and follows after the cut.
func TestContainerCut(t *testing.T) {
	if !backend.Root() {
		t.Skip("SKIPPED, NO CUT BETWEEN CONTAINERS WAS TESTED: only root may drop their packets; run make test-docker as root")
	}
	ctx := t.Context()
	c := inContainers(t, cluster.Spec{Backend: "etcd", Topology: "quorum"})
	old, err := c.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CutLinks(ctx, "slow", []int{old}, faultnet.Rule{Delay: time.Millisecond}); !errors.Is(err, cluster.ErrUnsupported) {
		t.Errorf("a delay: %v", err)
	}
	if _, err := c.CutLinks(ctx, "cut", []int{old}, faultnet.Rule{CutIn: true, CutOut: true}); err != nil {
		t.Fatal(err)
	}
	until(t, "another server leads", func() bool {
		now, err := c.Leader(ctx)
		return err == nil && now != old
	})
	e, err := c.LiftLinks(ctx, "cut")
	if err != nil || e.Packets == 0 {
		t.Errorf("the cut dropped %d packets, %v", e.Packets, err)
	}
	until(t, "all are healthy", func() bool { return c.Healthy(ctx) == nil })
	// One way: the leader gets nothing from the others, and they go on without it.
	if old, err = c.Leader(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CutLinks(ctx, "in", []int{old}, faultnet.Rule{CutIn: true}); err != nil {
		t.Fatal(err)
	}
	until(t, "another server leads", func() bool {
		now, err := c.Leader(ctx)
		return err == nil && now != old
	})
	if _, err := c.LiftLinks(ctx, "in"); err != nil {
		t.Fatal(err)
	}
	until(t, "all are healthy", func() bool { return c.Healthy(ctx) == nil })
}

// What a killed run leaves is removed by its labels; a live run keeps what it has.
func TestSweepContainers(t *testing.T) {
	c := inContainers(t, cluster.Spec{Backend: "redis"})
	if removed, err := container.Sweep(t.Context(), supervise.Dead); err != nil {
		t.Fatal(removed, err)
	}
	if !c.Nodes()[0].Alive() {
		t.Fatal("a sweep took the container of a live run")
	}
	dead := func(dir string) bool { return dir == c.RunDir() }
	removed, err := container.Sweep(t.Context(), dead)
	if err != nil || len(removed) != 2 {
		t.Errorf("a container and a network are to be removed: %v, %v", removed, err)
	}
	until(t, "its end is known", func() bool { return !c.Nodes()[0].Alive() })
}
