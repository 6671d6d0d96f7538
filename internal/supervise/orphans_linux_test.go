package supervise_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/lockbench/lockbench/internal/supervise"
)

// An orphan is known by its group and by its mark: another process with the
// number of a group that the journal names is spared, and so is one that bears
// the mark and stands elsewhere.
func TestOrphansByGroupAndMark(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		environ, cwd, killed bool
		group                bool
		later                bool // the journalled leader began after it
	}{
		{name: "by its environment", group: true, environ: true, killed: true},
		{name: "by its folder", group: true, cwd: true, killed: true},
		{name: "without a mark", group: true},
		{name: "of another group", environ: true, cwd: true},
		{name: "older than the child", group: true, environ: true, later: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := t.TempDir()
			cmd, dead := startController(t, base)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			// A group whose leader is gone, and one process left in it.
			leader := exec.Command("/bin/sh", "-c", "echo $$; read line; sleep 1000 >/dev/null & echo $!")
			leader.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if tt.environ {
				leader.Env = append(os.Environ(), "LOCKBENCH_RUN="+dead.Dir)
			}
			if tt.cwd {
				leader.Dir = dead.Dir
			}
			in, err := leader.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := leader.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := leader.Start(); err != nil {
				t.Fatal(err)
			}
			var pid, left int
			if _, err := fmt.Fscan(out, &pid); err != nil {
				t.Fatal(err)
			}
			start := startOf(t, pid)
			if tt.later {
				start += "0"
			}
			journalled := pid
			if !tt.group {
				journalled = 1 << 22 // above every pid
			}
			if _, err := io.WriteString(in, "\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Fscan(out, &left); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = syscall.Kill(left, syscall.SIGKILL)
				gone(t, left)
			})
			if err := leader.Wait(); err != nil {
				t.Fatal(err)
			}
			writeJournal(t, dead.Dir, map[string]any{"pid": journalled, "start_time": start, "name": "server"})
			swept, err := supervise.Sweep(base)
			if err != nil || len(swept) != 1 {
				t.Fatalf("swept %v, %v", swept, err)
			}
			if tt.killed == alive(left) {
				t.Errorf("it lives: %v, want %v (%v)", alive(left), !tt.killed, swept)
			}
			if named := strings.Contains(swept[0].String(), fmt.Sprintf("started by server (pid %d)", left)); named != tt.killed {
				t.Errorf("the report names it: %v (%v)", named, swept)
			}
		})
	}
}

// startOf is the start time of a process as the journal has it.
func startOf(t *testing.T, pid int) string {
	t.Helper()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):]))
	return strings.TrimSpace(string(boot)) + "/" + fields[20]
}
