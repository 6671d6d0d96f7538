package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// deadRun makes the folder of a run whose process died during a fault.
func deadRun(t *testing.T, temp string) string {
	t.Helper()
	dir := filepath.Join(temp, fmt.Sprintf("lockbench-%d", os.Getuid()), "r0123abcd")
	err := errors.Join(
		os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "live"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "processes.jsonl"), []byte(`{"fault":"leader-cut-1","what":"redis-1 cut off"}`+"\n"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

const deadRunText = "dead run r0123abcd: fault leader-cut-1 was still in force: redis-1 cut off; folder removed, no process was running\n"

func TestHeal(t *testing.T) {
	temp := t.TempDir()
	dir := deadRun(t, temp)
	for _, want := range []string{deadRunText, "nothing to clean up\n"} {
		cmd := exec.Command("lockbench", "heal")
		cmd.Env = append(os.Environ(), "TMPDIR="+temp)
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%v, %q, want %q", err, out, want)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the dead run's folder: %v", err)
		}
	}
}

// TestWatchdogIsNotToBeStopped: a signal to all processes called lockbench must
// not end the watchdog, which cleans up after the others.
func TestWatchdogIsNotToBeStopped(t *testing.T) {
	temp := t.TempDir()
	dir := deadRun(t, temp)
	cmd := exec.Command("lockbench", "watchdog", dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	pipe, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
	for deadline := time.Now().Add(20 * time.Second); !ignores(cmd.Process.Pid, signals); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the watchdog does not ignore signals")
		}
	}
	for _, s := range signals {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
	pipe.Close()
	if err := cmd.Wait(); err != nil || stderr.String() != "lockbench: cleaned up after "+deadRunText {
		t.Errorf("%v, %q", err, &stderr)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the dead run's folder: %v", err)
	}
}

// ignores reports whether a process has come to ignore the signals.
func ignores(pid int, signals []syscall.Signal) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, mask, _ := strings.Cut(string(status), "SigIgn:")
	var ignored uint64
	_, _ = fmt.Sscanf(mask, "%x", &ignored)
	return !slices.ContainsFunc(signals, func(s syscall.Signal) bool { return ignored&(1<<(s-1)) == 0 })
}

// A folder that is none of a run's is left alone.
func TestWatchdogOfAnotherFolder(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command("lockbench", "watchdog", dir).CombinedOutput()
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != int(exitInternal) || !bytes.Contains(out, []byte("not the folder of a run of this user")) {
		t.Errorf("%v, %s", err, out)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}
