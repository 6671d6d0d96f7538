package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// TestSlowDisk: a flush takes as long as specified, by either means; and a disk
// that is fast again delays no flush, not even one under way.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, backend string
		clock         bool // started with the library
		settings      map[string]string
		how           string
		write         func(ctx context.Context, t *testing.T, c *cluster.Cluster) error
	}{
		{"etcd", "etcd", true, nil, "strace", func(ctx context.Context, t *testing.T, c *cluster.Cluster) error {
			_, err := dialEtcd(t, c.Addresses()).Put(ctx, "kept", "1")
			return err
		}},
		{"mysql by strace", "mysql", false, nil, "strace", writeMySQL},
		{"mysql", "mysql", true, nil, "library", writeMySQL},
		{"redis", "redis", true, map[string]string{"appendonly": "yes", "appendfsync": "always"}, "library",
			func(ctx context.Context, _ *testing.T, c *cluster.Cluster) error {
				conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.Addresses()[0])
				if err != nil {
					return err
				}
				defer conn.Close()
				fmt.Fprint(conn, "SET a 1\r\n")
				_, err = conn.Read(make([]byte, 16))
				return err
			}},
		{"zookeeper", "zookeeper", true, clustertest.FastZooKeeper(), "library",
			func(_ context.Context, t *testing.T, c *cluster.Cluster) error {
				conn := openZooKeeper(t, c.Addresses())
				defer conn.Close()
				_, err := conn.Create("/kept-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
				return err
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := clustertest.StartSpec(t, cluster.Spec{Backend: tt.backend, Clock: tt.clock, Settings: tt.settings})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := c.Can("slow-disk"); err != nil {
				t.Fatal(err)
			}
			if err := tt.write(ctx, t, c); err != nil {
				t.Fatal(err)
			}
			const by = 300 * time.Millisecond
			how, err := c.SlowDisk(ctx, 0, by)
			if err != nil || !strings.Contains(how, tt.how) {
				t.Fatalf("%q, %v; want it by %s", how, err, tt.how)
			}
			began := time.Now()
			if err := tt.write(ctx, t, c); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took < by {
				t.Errorf("a write took %v with a disk slower by %v", took, by)
			}
			// So slow that no write ends unless FastDisk ends the wait.
			if _, err := c.SlowDisk(ctx, 0, time.Hour); err != nil {
				t.Fatal(err)
			}
			written := make(chan error, 1)
			go func() { written <- tt.write(ctx, t, c) }()
			select {
			case err := <-written:
				t.Errorf("a write ended at a disk that is stuck: %v", err)
			case <-time.After(by):
			}
			if err := c.FastDisk(ctx, 0); err != nil {
				t.Error(err)
			}
			if err := <-written; err != nil && ctx.Err() == nil {
				t.Logf("the write that waited: %v", err) // its session may be over
			}
			if err := tt.write(ctx, t, c); err != nil {
				t.Error(err)
			}
			if err := c.Healthy(ctx); err != nil {
				t.Error(err)
			}
			untraced(t, c.Nodes()[0].Process.PID())
			if err := c.FastDisk(ctx, 0); err != nil {
				t.Errorf("once more: %v", err)
			}
		})
	}
}

func writeMySQL(ctx context.Context, t *testing.T, c *cluster.Cluster) error {
	db := sqlAt(t, c, 0)
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS t (a INT)"); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, "INSERT INTO t VALUES (1)")
	return err
}

// untraced checks that no thread of the process is traced.
func untraced(t *testing.T, pid int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		t.Errorf("the threads of %d: %v, %v", pid, files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && !strings.Contains(string(text), "\nTracerPid:\t0\n") {
			t.Errorf("a thread of %d is still traced:\n%s", pid, text)
		}
	}
}

// TestSlowDiskEnds: a tracer that is killed, as with its run, leaves the server
// running, and FastDisk returns an error; a tracer whose server was killed and
// started again also leaves it running, and FastDisk returns no error.
func TestSlowDiskEnds(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "etcd", "single")
	ctx := t.Context()
	how, err := c.SlowDisk(ctx, 0, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var tracer int
	if _, err := fmt.Sscanf(how, "strace (pid %d)", &tracer); err != nil {
		t.Fatalf("%q: %v", how, err)
	}
	if err := syscall.Kill(tracer, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	putEtcd(t, c.Addresses())
	for syscall.Kill(tracer, 0) == nil {
		time.Sleep(time.Millisecond) // until it has been reaped
	}
	if err := c.FastDisk(ctx, 0); !errors.Is(err, cluster.ErrEndedEarly) {
		t.Errorf("a disk that was not slow to the end: %v", err)
	}
	if err := c.FastDisk(ctx, 0); err != nil {
		t.Errorf("once more: %v", err)
	}
	if err := c.Pause(ctx, 0); err != nil {
		t.Errorf("pause after the tracer's end: %v", err)
	}
	if _, err := c.SlowDisk(ctx, 0, time.Second); !errors.Is(err, cluster.ErrUnsupported) {
		t.Errorf("the disk of a paused server: %v", err)
	}
	if err := c.Resume(ctx, 0); err != nil {
		t.Error(err)
	}
	if _, err := c.SlowDisk(ctx, 0, 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := c.Pause(ctx, 0); !errors.Is(err, cluster.ErrUnsupported) {
		t.Errorf("pause of a traced server: %v", err)
	}
	if err := c.Kill(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SlowDisk(ctx, 0, time.Second); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the disk of a dead server: %v", err)
	}
	if err := c.Restart(ctx, 0); err != nil {
		t.Fatal(err)
	}
	untraced(t, c.Nodes()[0].Process.PID())
	if err := c.FastDisk(ctx, 0); err != nil {
		t.Error(err)
	}
	if err := c.Healthy(ctx); err != nil {
		t.Error(err)
	}
}

// TestSlowDiskRefused: SlowDisk is refused where it would have no effect.
func TestSlowDiskRefused(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "redis", "single")
	_, err := c.SlowDisk(t.Context(), 0, time.Second)
	if can := c.Can("slow-disk"); !errors.Is(err, cluster.ErrUnsupported) || !errors.Is(can, cluster.ErrUnsupported) || !strings.Contains(err.Error(), "appendonly") {
		t.Errorf("the disk of a redis that keeps nothing: %v, %v", err, can)
	}
	if err := c.FastDisk(t.Context(), 0); err != nil {
		t.Error(err)
	}
	for _, node := range []int{-1, 1} {
		if err := c.FastDisk(t.Context(), node); !errors.Is(err, cluster.ErrSpec) {
			t.Errorf("node %d: %v", node, err)
		}
	}
}
