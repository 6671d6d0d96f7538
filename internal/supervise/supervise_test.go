package supervise_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/supervise"
)

// The test binary is also the children that the tests start.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "watchdog" {
		guard(os.Args[2])
		return
	}
	switch os.Getenv("SUPERVISE_TEST_ROLE") {
	case "":
		os.Exit(m.Run())
	case "controller":
		controller()
	case "ignores-term": // takes no notice of SIGTERM
		ignoreTerm()
	case "hurt":
		hurt()
	case "busy":
		busy()
	}
}

// controller begins a run with two children, reports them on stdout and waits
// to be killed.
func controller() {
	run, err := supervise.Begin(os.Getenv("SUPERVISE_TEST_BASE"))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var pids []int
	for range 2 {
		p, err := run.Start(supervise.Command{Name: "sleeper", Path: sleepPath(), Args: []string{"1000"}})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		pids = append(pids, p.PID())
	}
	// A script, and what it starts: all three are to end with us.
	p, err := run.Start(supervise.Command{
		Name: "script", Path: "/bin/sh", StdoutPipe: true, Family: true,
		Args: []string{"-c", "sleep 1000 & echo $$ $!; sleep 1000; true"},
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var script, child int
	if _, err := fmt.Fscan(p.Stdout, &script, &child); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	pids = append(pids, p.PID(), script, child)
	// Threads come and go in a Go process; a child must not end with the
	// thread that happened to start it.
	for range 50 {
		done := make(chan struct{})
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends here
			close(done)
		}()
		<-done
	}
	_ = json.NewEncoder(os.Stdout).Encode(struct {
		Dir  string
		PIDs []int
	}{run.Dir(), pids})
	_, _ = io.Copy(io.Discard, os.Stdin)
	// Standard input is at its end: the test is gone.
	_ = run.End(context.Background())
}

func sleepPath() string {
	path, err := exec.LookPath("sleep")
	if err != nil {
		panic(err)
	}
	path, _ = filepath.Abs(path)
	return path
}

func self(t *testing.T, role string, env ...string) supervise.Command {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return supervise.Command{
		Name: role, Path: path,
		Env: append(os.Environ(), append(env, "SUPERVISE_TEST_ROLE="+role)...),
	}
}

func begin(t *testing.T) *supervise.Run {
	t.Helper()
	run, err := supervise.Begin(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.End(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return run
}

// gone waits until the pid is no live process.
func gone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if !alive(pid) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("pid %d lives on", pid)
		}
	}
}

func alive(pid int) bool {
	out, _ := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	state := strings.TrimSpace(string(out))
	return state != "" && state[0] != 'Z'
}

func TestEndStopsEverything(t *testing.T) {
	run := begin(t)
	var pids []int
	for range 3 {
		p, err := run.Start(supervise.Command{Name: "sleeper", Path: sleepPath(), Args: []string{"1000"}})
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, p.PID())
	}
	if err := run.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		gone(t, pid)
	}
	if _, err := os.Stat(run.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if err := run.End(t.Context()); err != nil {
		t.Errorf("the second End: %v", err)
	}
	if _, err := run.Start(supervise.Command{Name: "late", Path: sleepPath(), Args: []string{"1"}}); !errors.Is(err, supervise.ErrEnded) {
		t.Errorf("a start after the end: %v, want ErrEnded", err)
	}
}

func TestStopKillsProcessesThatIgnoreTermAndStoppedOnes(t *testing.T) {
	run := begin(t)
	c := self(t, "ignores-term")
	c.StdoutPipe = true
	p, err := run.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stdout.Close()
	if line, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil || line != "ignores-term\n" {
		t.Fatalf("it says %q, %v", line, err)
	}
	if err := p.Stop(t.Context(), 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("it ended by %v, want SIGKILL", err)
	}

	stopped, err := run.Start(supervise.Command{Name: "sleeper", Path: sleepPath(), Args: []string{"1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := stopped.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitState(t, stopped, 'T')
	if err := stopped.Stop(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := stopped.Err(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("it ended by %v, want SIGTERM", err)
	}
	if err := stopped.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal after the end: %v, want ErrProcessDone", err)
	}
}

func waitState(t *testing.T, p *supervise.Process, want byte) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		st, err := p.State()
		if err != nil {
			t.Fatal(err)
		}
		if st == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("state %c, want %c", st, want)
		}
	}
}

// A process stands still when all its threads do; one that runs, and one that has
// ended, does not.
func TestAwaitStopped(t *testing.T) {
	run := begin(t)
	p, err := run.Start(self(t, "busy"))
	if err != nil {
		t.Fatal(err)
	}
	if still, err := p.Stopped(); still || err != nil {
		t.Errorf("it stands still before it was stopped: %v, %v", still, err)
	}
	for range 20 {
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if err := p.AwaitStopped(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if still, err := p.Stopped(); !still || err != nil {
				t.Fatalf("it went on: %v, %v", still, err)
			}
		}
		if err := p.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.AwaitStopped(over); !errors.Is(err, context.Canceled) {
		t.Errorf("waited for one that runs: %v", err)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- p.AwaitStopped(context.Background()) }()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("waited for one that has ended: %v", err)
	}
}

// busy keeps several threads at work, and starts new ones.
func busy() {
	for range 3 {
		go func() {
			for {
				done := make(chan struct{})
				go func() {
					runtime.LockOSThread() // and never unlocks: the thread ends
					close(done)
				}()
				<-done
			}
		}()
	}
	select {}
}

func TestPipesExitAndCPU(t *testing.T) {
	run := begin(t)
	// Everything written is read, although the process has long ended; some
	// CPU time is used first.
	p, err := run.Start(supervise.Command{
		Name: "shell", Path: "/bin/sh", StdinPipe: true, StdoutPipe: true,
		Args: []string{"-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; read line; echo got $line; exit 3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.Err() != nil {
		t.Errorf("an error while it runs: %v", p.Err())
	}
	if _, err := io.WriteString(p.Stdin, "this\n"); err != nil {
		t.Fatal(err)
	}
	p.Stdin.Close()
	<-p.Done()
	out, err := io.ReadAll(p.Stdout)
	p.Stdout.Close()
	if err != nil || string(out) != "got this\n" {
		t.Errorf("it wrote %q, %v", out, err)
	}
	if p.Err() == nil || !strings.Contains(p.Err().Error(), "exit status 3") {
		t.Errorf("it ended by %v, want exit status 3", p.Err())
	}
	if d, err := p.CPU(); err != nil || d <= 0 {
		t.Errorf("CPU %v, %v", d, err)
	}
	if st, err := p.State(); err != nil || st != 'Z' {
		t.Errorf("state %c, %v", st, err)
	}
}

func TestStartErrors(t *testing.T) {
	run := begin(t)
	for _, path := range []string{"sleep", "/nonexistent/program", "/dev/null"} {
		if _, err := run.Start(supervise.Command{Name: "x", Path: path}); err == nil {
			t.Errorf("%s was started", path)
		}
	}
}

// What a child leaves in its process group ends with it.
func TestGrandchildren(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a group can be named safely on Linux only")
	}
	run := begin(t)
	p, err := run.Start(supervise.Command{
		Name: "shell", Path: "/bin/sh", StdoutPipe: true,
		Args: []string{"-c", "sleep 1000 >/dev/null & echo $!; read forever"},
	})
	if err != nil {
		t.Fatal(err)
	}
	pid := printed(t, p)
	<-p.Done() // its standard input is empty
	gone(t, pid)
}

// A family exits as its program does, and its watch ends with it.
func TestFamily(t *testing.T) {
	run := begin(t)
	for _, status := range []int{0, 7} {
		p, err := run.Start(supervise.Command{
			Name: "script", Path: "/bin/sh", StdoutPipe: true, Family: true,
			Args: []string{"-c", fmt.Sprintf("read line; echo \"[$line]\" \"$0\" \"$1\"; exit %d", status), "a b", "c*"},
		})
		if err != nil {
			t.Fatal(err)
		}
		out, err := bufio.NewReader(p.Stdout).ReadString('\n')
		if err != nil || out != "[] a b c*\n" {
			t.Errorf("it wrote %q, %v", out, err)
		}
		<-p.Done()
		p.Stdout.Close()
		if err := p.Err(); (err == nil) != (status == 0) || err != nil && !strings.Contains(err.Error(), fmt.Sprint("status ", status)) {
			t.Errorf("it ended by %v, want status %d", err, status)
		}
	}
	p, err := run.Start(supervise.Command{
		Name: "script", Path: "/bin/sh", StdoutPipe: true, Family: true, Args: []string{"-c", "echo $$; sleep 1000; true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	pid := printed(t, p)
	if err := p.Stop(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	gone(t, pid)
	if _, err := run.Start(supervise.Command{Name: "none", Path: "/nonexistent/script", Family: true}); err == nil {
		t.Error("a script that is not there was started")
	}
}

func ignoreTerm() {
	signal.Ignore(syscall.SIGTERM)
	fmt.Println("ignores-term")
	time.Sleep(time.Hour)
}

// printed is the pid that a child prints.
func printed(t *testing.T, p *supervise.Process) (pid int) {
	t.Helper()
	t.Cleanup(func() { p.Stdout.Close() })
	if _, err := fmt.Fscan(p.Stdout, &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}
