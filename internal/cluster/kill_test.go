package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/supervise"
	"github.com/lockbench/lockbench/internal/testenv"
)

// The test binary is also a controller to be killed, and the helper in containers.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "in-container" {
		if err := cluster.InContainer(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv("CLUSTER_TEST_ROLE") == "controller" {
		if err := controller(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// controller starts servers of each kind, alone and together, names their pids
// on stdout and waits.
func controller() error {
	run, err := supervise.Begin(os.Getenv("CLUSTER_TEST_BASE"))
	if err != nil {
		return err
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
		pids = map[string]int{}
	)
	specs := []cluster.Spec{{Backend: "redis", Topology: "replicated"}, {Backend: "mysql", Topology: "replicated"}}
	for _, backend := range cluster.Backends() {
		specs = append(specs, cluster.Spec{Backend: backend, Topology: "single"})
	}
	for _, spec := range specs {
		wg.Go(func() {
			if spec.Backend == "etcd" {
				spec.Binary = os.Getenv("CLUSTER_TEST_ETCD")
			}
			c, err := cluster.Start(context.Background(), run, spec)
			mu.Lock()
			defer mu.Unlock()
			if errs = append(errs, err); err == nil {
				for _, n := range slices.Concat(c.Nodes(), c.Watchers()) {
					pids[spec.Topology+" "+n.Name] = n.Process.PID()
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return errors.Join(err, run.End(context.Background()))
	}
	if err := json.NewEncoder(os.Stdout).Encode(pids); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return run.End(context.Background())
}

// No server outlives a lockbench that was killed, even one that changes its user,
// threads or session.
func TestKillNine(t *testing.T) {
	testenv.NeedsServers(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a parent-death signal; elsewhere the next start sweeps")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	// PostgreSQL runs as another account, which has to get there.
	if err := os.Chmod(filepath.Dir(base), 0o711); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "CLUSTER_TEST_ROLE=controller", "CLUSTER_TEST_BASE="+base, "CLUSTER_TEST_ETCD="+etcdBinary(t))
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids := map[string]int{}
	err = json.NewDecoder(out).Decode(&pids)
	if len(pids) != 6+6+2 {
		t.Errorf("servers %v", pids)
	}
	// Alive until now, whatever comes next.
	for backend, pid := range pids {
		if syscall.Kill(pid, 0) != nil {
			t.Errorf("%s (pid %d) was gone before the kill", backend, pid)
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		t.Fatalf("the controller did not come up: %v", err)
	}
	for backend, pid := range pids {
		for deadline := time.Now().Add(20 * time.Second); lives(pid); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("%s (pid %d) outlived its lockbench", backend, pid)
				break
			}
		}
	}
	swept, err := supervise.Sweep(base)
	if err != nil || len(swept) != 1 || len(swept[0].Killed) != 0 {
		t.Errorf("swept %v, %v; want one run with nothing left running", swept, err)
	}
}

// lives: a zombie answers signals, so its state is looked at.
func lives(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	var state string
	for i := len(data) - 1; i >= 0; i-- {
		if data[i] == ')' {
			_, _ = fmt.Sscan(string(data[i+1:]), &state)
			break
		}
	}
	return state != "Z" && state != "X"
}
