package cluster

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/supervise"
	"github.com/lockbench/lockbench/internal/testenv"
)

// A server that another run started on our port must not pass for ours.
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	testenv.NeedsServers(t)
	for _, name := range Backends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run, err := supervise.Begin("")
			if err != nil {
				t.Fatal(err)
			}
			defer run.End(context.Background())
			spec := Spec{Backend: name}
			if etcd, err := filepath.Abs("../../bin/etcd"); name == "etcd" && err == nil && backend.Executable(etcd) == nil {
				spec.Binary = etcd
			}
			c, err := Start(t.Context(), run, spec)
			if err != nil {
				t.Fatal(err)
			}
			ours := c.Nodes()[0]
			other, err := run.Start(supervise.Command{Name: "bystander", Path: "/bin/sh", StdinPipe: true, Args: []string{"-c", "read forever"}})
			if err != nil {
				t.Fatal(err)
			}
			stranger := &Node{Name: "stranger", Address: ours.Address, Process: other, Dir: filepath.Join(t.TempDir(), "1")}
			if err := c.backend.Ready(t.Context(), c.servers, ours); err != nil {
				t.Errorf("our own is refused: %v", err)
			}
			if err := c.backend.Ready(t.Context(), c.servers, stranger); !errors.Is(err, backend.ErrPortTaken) {
				t.Errorf("a stranger passes: %v", err)
			}
		})
	}
}

func TestFreePorts(t *testing.T) {
	low, high := ephemeral()
	ports, err := freePorts(30)
	if err != nil || len(ports) != 30 {
		t.Fatalf("%v, %v", ports, err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		if p >= low && p <= high || p < 10000 || seen[p] {
			t.Errorf("port %d is taken twice, or lies in %d..%d", p, low, high)
		}
		seen[p] = true
	}
}

func TestLimitsFor(t *testing.T) {
	production := impls.DefaultLimits()
	if got := LimitsFor("redis", nil); got != production {
		t.Errorf("redis: %+v", got)
	}
	for _, tick := range []string{"", "often", "-1"} {
		if got := LimitsFor("zookeeper", map[string]string{"tickTime": tick}); got != production {
			t.Errorf("tickTime=%q: %+v", tick, got)
		}
	}
	if got := LimitsFor("zookeeper", map[string]string{"tickTime": "500"}); got.TickTime != 500*time.Millisecond {
		t.Errorf("tickTime=500: %+v", got)
	}
	if got := LimitsFor("etcd", map[string]string{"election-timeout": "3000"}); got.ElectionTimeout != 3*time.Second {
		t.Errorf("election-timeout=3000: %+v", got)
	}
}
