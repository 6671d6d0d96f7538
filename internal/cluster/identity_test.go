package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/supervise"
	"github.com/lockbench/lockbench/internal/testenv"
)

// A server that another run started on our port must not pass for ours.
func TestStrangersAreRefused(t *testing.T) {
	testenv.NeedsServers(t)
	for _, backend := range Backends() {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			run, err := supervise.Begin("")
			if err != nil {
				t.Fatal(err)
			}
			defer run.End(context.Background())
			spec := Spec{Backend: backend}
			if etcd, err := filepath.Abs("../../bin/etcd"); backend == "etcd" && err == nil && executable(etcd) == nil {
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
			stranger := &Node{Name: "stranger", Address: ours.Address, Process: other, dir: filepath.Join(t.TempDir(), "1")}
			if err := c.driver.ready(t.Context(), c, ours); err != nil {
				t.Errorf("our own is refused: %v", err)
			}
			if err := c.driver.ready(t.Context(), c, stranger); !errors.Is(err, errPortTaken) {
				t.Errorf("a stranger passes: %v", err)
			}
		})
	}
}

// Streams that end count as messages from etcd 3.6 on, and not before.
func TestEtcdMessages(t *testing.T) {
	page := func(version string) string {
		return `etcd_server_version{server_version="` + version + `"} 1
grpc_server_handled_total{grpc_code="Canceled",grpc_method="Watch",grpc_service="etcdserverpb.Watch",grpc_type="bidi_stream"} 1
grpc_server_handled_total{grpc_code="OK",grpc_method="LeaseKeepAlive",grpc_service="etcdserverpb.Lease",grpc_type="bidi_stream"} 2
grpc_server_handled_total{grpc_code="OK",grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"} 7
grpc_server_msg_received_total{grpc_method="LeaseKeepAlive",grpc_service="etcdserverpb.Lease",grpc_type="bidi_stream"} 12
grpc_server_msg_received_total{grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"} 7
grpc_server_msg_received_total{grpc_method="Watch",grpc_service="etcdserverpb.Watch",grpc_type="bidi_stream"} 1.2e+06
grpc_server_msg_received_total{grpc_method="Watch",grpc_service="grpc.health.v1.Health",grpc_type="server_stream"} 5
`
	}
	for version, want := range map[string]map[string]int64{
		"3.5.21": {"LeaseKeepAlive": 12, "Put": 7, "Watch": 1200000},
		"3.7.3":  {"LeaseKeepAlive": 10, "Put": 7, "Watch": 1199999},
	} {
		got, err := etcdMessages(page(version))
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: %v, %v", version, got, err)
		}
		for method, n := range want {
			if got[method] != n {
				t.Errorf("%s: %s %d, want %d", version, method, got[method], n)
			}
		}
	}
	if _, err := etcdMessages("something_else 1\n"); err == nil {
		t.Error("a page without messages is read as none")
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

// The first lines name the fault, the last ones the end; what an earlier start
// wrote is not blamed on this one.
func TestLogLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	earlier := "an earlier start\n"
	text := earlier + "the fault\n"
	for range 5000 {
		text += "padding, and more of it\n"
	}
	text += "\n\nthe end\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := logLines(path, int64(len(earlier)))
	if lines[0] != "the fault" || lines[len(lines)-1] != "the end" {
		t.Errorf("first %q, last %q", lines[0], lines[len(lines)-1])
	}
	if got := logLines(filepath.Join(t.TempDir(), "none"), 0); got != nil {
		t.Errorf("of no file: %v", got)
	}
}

// A port that was taken is seen wherever the server says so, but not if an
// earlier start said it.
func TestPortTaken(t *testing.T) {
	n := imitated(t, zookeeper{}, []string{""}).Nodes()[0]
	stack := strings.Repeat("\tat some.java.Class(Class.java:1)\n", 40)
	for _, tt := range []struct {
		log   string
		from  int64
		taken bool
	}{
		{stack + "java.net.BindException: Address already in use\n" + stack, 0, true},
		{"java.net.BindException: Address already in use\n" + stack, 60, false},
		{stack, 0, false},
	} {
		n.log, n.logFrom = filepath.Join(t.TempDir(), "log"), tt.from
		if err := os.WriteFile(n.log, []byte(tt.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := n.died(); errors.Is(err, errPortTaken) != tt.taken || !errors.Is(err, ErrServer) {
			t.Errorf("taken is to be %t: %v", tt.taken, err)
		}
	}
}

// What is not there is said with the command that brings it.
func TestMissing(t *testing.T) {
	for _, backend := range Backends() {
		_, err := search{backend: backend}.program("no-such-program-anywhere")
		m, ok := errors.AsType[*MissingError](err)
		if !errors.Is(err, ErrMissing) || !ok || m.Backend != backend || m.Command == "" || !strings.Contains(err.Error(), m.Command) {
			t.Errorf("%s: %v", backend, err)
		}
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
