// Package clustertest starts real servers for tests: one cluster per test,
// gone when the test is over, and gone too when the test binary is killed.
//
// A server that is missing fails the test: a suite that skips silently proves
// nothing. `make servers` brings them all. Only "go test -short" leaves these
// tests out.
//
// It may import cluster, supervise and testenv.
package clustertest

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/backend/all"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/supervise"
	"github.com/lockbench/lockbench/internal/testenv"
)

// Start starts a cluster and stops it at the end of the test. Settings are
// merged, later ones winning. The test fails if the servers cannot be had.
//
// It may be called by many tests at once; none waits for another.
func Start(t testing.TB, backend, topology string, settings ...map[string]string) *cluster.Cluster {
	t.Helper()
	return StartSpec(t, cluster.Spec{Backend: backend, Topology: topology, Settings: merge(settings)})
}

// StartSpec is Start with a complete specification. The logs are shown if the
// test fails.
func StartSpec(t testing.TB, spec cluster.Spec) *cluster.Cluster {
	t.Helper()
	testenv.NeedsServers(t, spec.Backend)
	run := Run(t)
	if spec.LogDir == "" {
		spec.LogDir = filepath.Join(run.Dir(), "logs-"+spec.Backend)
	}
	if spec.Binary == "" {
		spec.Binary = Binary(t, spec.Backend)
	}
	c, err := cluster.Start(t.Context(), run, spec)
	if err != nil {
		t.Fatalf("%v\n(install the servers by `make servers`)", err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		// Also those of the sentinels, which are not nodes.
		logs, _ := filepath.Glob(filepath.Join(spec.LogDir, "*.log"))
		for _, path := range logs {
			if log, err := os.ReadFile(path); err == nil {
				t.Logf("%s:\n%s", filepath.Base(path), log[max(0, len(log)-1000):])
			}
		}
	})
	return c
}

// Run begins a run of the test's own, which ends with the test, before the
// folders of t.TempDir are removed.
func Run(t testing.TB) *supervise.Run {
	t.Helper()
	testenv.NeedsProcesses(t)
	// Test binaries that were killed leave folders behind as runs do.
	if _, err := supervise.Sweep(""); err != nil {
		t.Logf("sweep dead runs: %v", err)
	}
	run, err := supervise.Begin("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := run.End(ctx); err != nil {
			t.Error(err)
		}
	})
	return run
}

// FastZooKeeper are settings that are NOT production defaults: a short tick,
// so that sessions may last 1 s instead of 4 s, and a small JVM that starts
// quickly. They are for tests of behaviour; figures taken with them mean
// nothing.
func FastZooKeeper() map[string]string {
	return map[string]string{
		"tickTime": "500",
		"jvmFlags": "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto",
	}
}

func merge(list []map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range list {
		maps.Copy(all, m)
	}
	return all
}

// Binary is what a test has to name as a backend's server, since the command
// would find it beside its own executable and a test binary lies elsewhere; ""
// if the usual search will do.
func Binary(t testing.TB, backend string) string {
	t.Helper()
	if all.Describe(backend).Packages.Build == "" || os.Getenv("LOCKBENCH_SERVER_"+strings.ToUpper(backend)) != "" {
		return ""
	}
	return built(t, backend)
}

// built finds a server that `make servers` built into the module's bin/; "" if
// it is not there, for then it may be installed.
func built(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			path := filepath.Join(dir, "bin", name)
			if _, err := os.Stat(path); err != nil {
				return ""
			}
			return path
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}
