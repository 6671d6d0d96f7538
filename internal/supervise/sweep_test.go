package supervise_test

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
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lockbench/lockbench/internal/supervise"
)

func TestSweepAfterKill(t *testing.T) {
	base := t.TempDir()
	cmd, started := startController(t, base)
	live, err := supervise.Begin(base)
	if err != nil {
		t.Fatal(err)
	}
	defer live.End(context.Background())
	sleeper, err := live.Start(supervise.Command{Name: "sleeper", Path: sleepPath(), Args: []string{"1000"}})
	if err != nil {
		t.Fatal(err)
	}

	// Both are alive: nothing to sweep.
	if swept, err := supervise.Sweep(base); err != nil || len(swept) != 0 {
		t.Fatalf("swept %v, %v with all runs alive", swept, err)
	}
	for _, pid := range started.PIDs {
		if !alive(pid) {
			t.Fatalf("pid %d ended although its run lives", pid)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if runtime.GOOS == "linux" {
		// By the kernel, without a sweep.
		for _, pid := range started.PIDs {
			gone(t, pid)
		}
	}
	swept, err := supervise.Sweep(base)
	if err != nil || len(swept) != 1 || swept[0].Dir != started.Dir {
		t.Fatalf("swept %v, %v; want %s", swept, err, started.Dir)
	}
	if _, err := os.Stat(started.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the dead run's folder is still there: %v", err)
	}
	for _, pid := range started.PIDs {
		gone(t, pid)
	}
	if _, err := os.Stat(live.Dir()); err != nil {
		t.Errorf("the live run's folder: %v", err)
	}
	if !alive(sleeper.PID()) {
		t.Error("the live run's process was killed")
	}
}

type controllerRun struct {
	Dir  string
	PIDs []int
}

func startController(t *testing.T, base string) (*exec.Cmd, controllerRun) {
	t.Helper()
	return startRole(t, "controller", base, os.Stderr)
}

// startRole starts this program in a role that begins a run under base and
// reports it.
func startRole(t *testing.T, role, base string, stderr io.Writer) (*exec.Cmd, controllerRun) {
	t.Helper()
	c := self(t, role, "SUPERVISE_TEST_BASE="+base)
	cmd := exec.Command(c.Path)
	cmd.Env = c.Env
	cmd.Stderr = stderr
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
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var got controllerRun
	if err := json.NewDecoder(out).Decode(&got); err != nil {
		t.Fatal(err)
	}
	return cmd, got
}

// A process that lost its parent-death signal is found by the journal; one
// with the pid, but another start time, is a stranger and is spared.
func TestSweepGoesByStartTime(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(start string) string
		killed bool
	}{
		{"same", func(s string) string { return s }, true},
		{"another", func(s string) string { return s + "1" }, false},
		{"none", func(string) string { return "" }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := t.TempDir()
			// Ours by another run, so it outlives the dead one's end.
			owner := begin(t)
			p, err := owner.Start(supervise.Command{Name: "sleeper", Path: sleepPath(), Args: []string{"1000"}})
			if err != nil {
				t.Fatal(err)
			}
			cmd, dead := startController(t, base)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			writeJournal(t, dead.Dir, map[string]any{"pid": p.PID(), "start_time": tt.change(p.StartTime()), "name": "sleeper"})
			swept, err := supervise.Sweep(base)
			if err != nil || len(swept) != 1 {
				t.Fatalf("swept %v, %v", swept, err)
			}
			if tt.killed {
				<-p.Done()
				if len(swept[0].Killed) == 0 {
					t.Error("the report does not name it")
				}
			} else {
				select {
				case <-p.Done():
					t.Error("a stranger was killed")
				default:
				}
			}
		})
	}
}

// writeJournal adds a line to the journal of a dead run, and others that a kill
// can leave; those do no harm.
func writeJournal(t *testing.T, dir string, entry map[string]any) {
	t.Helper()
	line, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	journal, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(journal) != 1 {
		t.Fatalf("journal %v, %v", journal, err)
	}
	f, err := os.OpenFile(journal[0], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s\n{\"pid\":1,\"start_time\":\"x\"}\n{\"pid\":2", line); err != nil {
		t.Fatal(err)
	}
}

// A line that a full disk cut short takes no later one with it.
func TestJournalAfterALineCutShort(t *testing.T) {
	run := begin(t)
	path := filepath.Join(run.Dir(), "processes.jsonl")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"pid":4711,"start`)
	if err := errors.Join(err, f.Close(), run.NoteFault("f-1", "a pause")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if last := lines[len(lines)-1]; !json.Valid([]byte(last)) || !strings.Contains(last, "f-1") {
		t.Errorf("the line after it cannot be read: %q", data)
	}
}

func TestFolderOfAnotherIsRefused(t *testing.T) {
	base := t.TempDir()
	// A link in a shared folder would lead to another user's files.
	if err := os.Symlink(t.TempDir(), filepath.Join(base, fmt.Sprintf("lockbench-%d", os.Getuid()))); err != nil {
		t.Fatal(err)
	}
	if run, err := supervise.Begin(base); err == nil {
		t.Error("a link was followed")
		_ = run.End(context.Background())
	}
}

// TestSweepWhileRunsEnd: a sweep that meets a run in the middle of its end
// leaves nothing in its folder.
func TestSweepWhileRunsEnd(t *testing.T) {
	base := t.TempDir()
	done := make(chan struct{})
	var sweeps sync.WaitGroup
	sweeps.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if _, err := supervise.Sweep(base); err != nil {
					t.Error(err)
				}
			}
		}
	})
	var runs sync.WaitGroup
	for range 4 {
		runs.Go(func() {
			for range 50 {
				r, err := supervise.Begin(base)
				if err != nil {
					t.Error(err)
					return
				}
				for i := range 20 { // so that removing it takes a moment
					if err := os.WriteFile(filepath.Join(r.Dir(), strconv.Itoa(i)), nil, 0o600); err != nil {
						t.Error(err)
					}
				}
				if err := r.End(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	runs.Wait()
	close(done)
	sweeps.Wait()
}
