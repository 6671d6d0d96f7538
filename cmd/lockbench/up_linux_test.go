package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testenv"
)

// Servers stay until "lockbench down", are usable as external ones meanwhile, and
// end with the process that keeps them if that is killed.
func TestUpAndDown(t *testing.T) {
	testenv.NeedsServers(t, "redis")
	temp, dir := t.TempDir(), t.TempDir()
	config := filepath.Join(dir, "up.yaml")
	command := func(code int, args ...string) string {
		t.Helper()
		cmd := exec.Command("lockbench", args...)
		cmd.Env = append(os.Environ(), "TMPDIR="+temp)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("lockbench %v: exit %d, want %d\n%s", args, got, code, &out)
		}
		return out.String()
	}
	t.Cleanup(func() { command(0, "down") })
	nothing := func(when string) {
		t.Helper()
		deadline := time.Now().Add(time.Minute)
		for {
			left, err := leftBehind(temp, "", nil)
			if err == nil && len(left) == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: left behind: %v (%v)", when, left, err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	address := func(printed string) string {
		t.Helper()
		line, _, _ := strings.Cut(printed, "\n")
		fields := strings.Fields(line)
		if len(fields) != 2 || fields[0] != "redis/single" {
			t.Fatalf("it prints %q", printed)
		}
		return fields[1]
	}
	serves := func(address string) bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}

	first := address(command(0, "up", "redis/single", "--config", config))
	command(0, append([]string{"run", "--quiet", "--out", dir}, experiment(config, "redis/token")...)...)
	contains(t, command(2, "up", "redis/single", "--config", config), "describes servers that are running")
	contains(t, command(0, "down", "etcd/single"), "nothing to stop")
	if !serves(first) {
		t.Error("it does not serve after the end of another topology")
	}
	contains(t, command(0, "down"), "stopped redis/single")
	if serves(first) {
		t.Error("it serves after lockbench down")
	}
	if _, err := os.Stat(config); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the configuration is still there: %v", err)
	}
	nothing("after down")

	second := address(command(0, "up", "redis/single", "--config", config))
	files, err := filepath.Glob(filepath.Join(temp, "*", "*", keptName))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(k.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	nothing("after kill -9")
	if serves(second) {
		t.Error("it serves although the process that kept it was killed")
	}
	command(0, "down")

	foreign := filepath.Join(dir, "mine.yaml")
	if err := os.WriteFile(foreign, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	misused(t, "choose another file", "up", "redis/single", "--config", foreign)
	misused(t, "no topology", "up", "redis/nothing")
	misused(t, "one topology of each backend", "up", "redis/single", "redis/quorum")
}
