package supervise_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockbench/lockbench/internal/supervise"
)

// guard is the watchdog of the runs of these tests.
func guard(dir string) {
	swept, err := supervise.Guard(dir, os.Stdin, nil)
	if swept != nil {
		fmt.Fprintln(os.Stderr, swept)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func watchdogCommand() []string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return []string{self, "watchdog"}
}

// hurt begins a run in the middle of two faults, with all that a kill could
// leave behind, reports it on stdout and waits to be killed.
func hurt() {
	run, err := supervise.Begin(os.Getenv("SUPERVISE_TEST_BASE"))
	check(err)
	check(run.Watch(watchdogCommand()))
	sh := func(family bool, script string) (*supervise.Process, int) {
		p, err := run.Start(supervise.Command{
			Name: "script", Path: "/bin/sh", StdoutPipe: true, Family: family, Args: []string{"-c", script},
		})
		check(err)
		var pid int
		_, err = fmt.Fscan(p.Stdout, &pid)
		check(err)
		return p, pid
	}
	// A client that is stopped.
	paused, err := run.Start(supervise.Command{Name: "client 3", Path: sleepPath(), Args: []string{"1000"}})
	check(err)
	check(run.NoteFault("holder-pause-1", "the holder is stopped", paused))
	check(paused.Signal(syscall.SIGSTOP))
	// A server that is a script's child, both stopped, and the shell that
	// watches over them: it cannot see that we are gone.
	family, server := sh(true, "echo $$; sleep 1000; true")
	check(run.NoteFault("leader-pause-1", "the leader is stopped", family))
	check(syscall.Kill(-family.PID(), syscall.SIGSTOP))
	// One that is healed.
	check(run.NoteFault("holder-cut-1", "healed long ago"))
	check(run.FaultHealed("holder-cut-1"))
	pids := []int{paused.PID(), family.PID(), server}
	if runtime.GOOS == "linux" {
		// A child's child, which gets no parent-death signal.
		child, orphan := sh(false, "sleep 1000 >/dev/null & echo $!; exec sleep 1000")
		pids = append(pids, child.PID(), orphan)
	}
	check(json.NewEncoder(os.Stdout).Encode(controllerRun{run.Dir(), pids}))
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1) // the test is gone; the watchdog does the rest
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// removed waits until a folder is gone.
func removed(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there", dir)
		}
	}
}

// TestWatchdog: without a sweep nothing is left of a run that was
// killed in the middle of its faults.
func TestWatchdog(t *testing.T) {
	base := t.TempDir()
	said := &bytes.Buffer{}
	cmd, started := startRole(t, "hurt", base, said)
	for _, pid := range started.PIDs {
		if !alive(pid) {
			t.Fatalf("pid %d is not there before the kill", pid)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Wait returns when the watchdog, too, has let go of standard error.
	_ = cmd.Wait()
	removed(t, started.Dir)
	for _, pid := range started.PIDs {
		gone(t, pid)
	}
	first := strings.Index(said.String(), "fault leader-pause-1 was still in force: the leader is stopped; it had stopped script (pid ")
	second := strings.Index(said.String(), "fault holder-pause-1 was still in force: the holder is stopped; it had stopped client 3 (pid ")
	if first < 0 || second < first || strings.Contains(said.String(), "holder-cut-1") {
		t.Errorf("the watchdog says %q", said)
	}
	if swept, err := supervise.Sweep(base); err != nil || len(swept) != 0 {
		t.Errorf("swept %v, %v after the watchdog", swept, err)
	}
}

// TestWatchdogEndsWithItsRun, whether or not it still lives when the run ends.
func TestWatchdogEndsWithItsRun(t *testing.T) {
	for _, killed := range []bool{false, true} {
		run := begin(t)
		if err := run.Watch(watchdogCommand()); err != nil {
			t.Fatal(err)
		}
		if err := run.Watch(watchdogCommand()); err == nil {
			t.Error("a second watchdog was started")
		}
		pid := run.WatchdogPID()
		// A session of its own: no Ctrl-C and no hang-up of a terminal reaches it.
		if sid, err := unix.Getsid(pid); err != nil || sid != pid {
			t.Errorf("the watchdog %d is in session %d, %v", pid, sid, err)
		}
		if killed {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		if err := run.End(t.Context()); err != nil {
			t.Error(err)
		}
		if alive(pid) {
			t.Errorf("the watchdog (pid %d) outlives its run", pid)
		}
		if err := run.Watch(watchdogCommand()); !errors.Is(err, supervise.ErrEnded) {
			t.Errorf("a watchdog for a run that has ended: %v", err)
		}
		if err := run.NoteFault("x", "x"); !errors.Is(err, supervise.ErrEnded) {
			t.Errorf("a fault of a run that has ended: %v", err)
		}
	}
}

// A watchdog that comes late finds nothing; one that is led astray touches
// nothing.
func TestGuardMindsItsOwn(t *testing.T) {
	base := t.TempDir()
	cmd, dead := startController(t, base)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if _, err := supervise.Sweep(base); err != nil {
		t.Fatal(err)
	}
	if swept, err := supervise.Guard(dead.Dir, strings.NewReader(""), nil); swept != nil || err != nil {
		t.Errorf("after a sweep: %v, %v", swept, err)
	}
	mine := t.TempDir()
	for _, dir := range []string{
		mine, "/", "", "r12345678", filepath.Join(mine, "r12345678"),
		filepath.Dir(dead.Dir), dead.Dir + "/..", filepath.Join(filepath.Dir(dead.Dir), "other"),
	} {
		if swept, err := supervise.Guard(dir, strings.NewReader(""), nil); swept != nil || err == nil {
			t.Errorf("%q: %v, %v", dir, swept, err)
		}
	}
}
