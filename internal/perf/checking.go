package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/history/historytest"
)

// checking measures "lockbench check" as users run it: a process of its own on
// two processors, which reads the history from disk. CPU seconds, of all its
// threads, say more than the time it took on a machine that others use.
func checking(ctx context.Context, lockbench, dir string, calls int) error {
	fmt.Printf("\ncheck of %d calls from disk on two processors\n", calls)
	fmt.Printf("%6s %8s %8s %5s %8s   %8s %8s %12s %9s   %s\n", "keys", "clients", "unknown", "", "", "seconds", "CPU s", "calls/s", "peak MiB", "verdict, promise")
	for _, keys := range []int{1, 100} {
		for _, clients := range []int{8, 128} {
			for _, unknown := range []float64{0, 0.01, 0.05} {
				l := historytest.Load{Calls: calls, Keys: keys, Clients: clients, Unknown: unknown, Hot: clients == 128, Invalid: unknown == 0.01}
				if err := checkOne(ctx, lockbench, dir, l); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func checkOne(ctx context.Context, lockbench, dir string, l historytest.Load) error {
	path := filepath.Join(dir, "history.lbh")
	if err := simulateElsewhere(ctx, l, path); err != nil {
		return err
	}
	defer os.Remove(path)
	cmd := exec.CommandContext(ctx, lockbench, "check", "--model", "mutex", path)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2", "TMPDIR="+dir)
	began := time.Now()
	out, err := cmd.Output()
	took := time.Since(began)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("run %s: %w", lockbench, err)
	}
	code := cmd.ProcessState.ExitCode()
	if want := map[bool]int{false: 0, true: 3}[l.Invalid]; code != want {
		return fmt.Errorf("check of %+v ended with %d, want %d:\n%s", l, code, want, out)
	}
	state := cmd.ProcessState
	usage, _ := state.SysUsage().(*syscall.Rusage)
	peak := int64(0)
	if usage != nil {
		peak = usage.Maxrss >> 10 // KiB on Linux
	}
	fmt.Printf("%6d %8d %7.0f%% %5s %8s   %8.2f %8.2f %12.0f %9d   %s\n", l.Keys, l.Clients, 100*l.Unknown, choose(l.Hot, "hot", ""), choose(l.Invalid, "invalid", ""),
		took.Seconds(), (state.UserTime() + state.SystemTime()).Seconds(), float64(l.Calls)/took.Seconds(), peak, choose(l.Invalid, "unsafe, broken", "safe, kept"))
	return nil
}

// envSimulate makes this program write a history, as asked on its standard
// input, and nothing else.
const envSimulate = "LOCKBENCH_PERF_SIMULATE"

type simulation struct {
	Load historytest.Load
	Path string
}

// simulateElsewhere writes the history of l in a process of its own: the kernel
// counts the memory of the process that starts another as that one's peak too,
// and the history itself would hide what its check takes.
func simulateElsewhere(ctx context.Context, l historytest.Load, path string) error {
	order, err := json.Marshal(simulation{l, path})
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), envSimulate+"=1")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(order), os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("make the history of %+v: %w", l, err)
	}
	return nil
}

// simulateMain is the process that simulateElsewhere starts.
func simulateMain(order io.Reader) error {
	var s simulation
	if err := json.NewDecoder(order).Decode(&s); err != nil {
		return fmt.Errorf("read which history to make: %w", err)
	}
	return history.Save(s.Path, historytest.Simulate(s.Load, uint64(s.Load.Calls)))
}

func choose(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}
