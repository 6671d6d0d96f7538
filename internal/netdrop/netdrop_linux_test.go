package netdrop

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/nftables"
)

// envRole makes the test binary the program that enters a namespace: to run
// the tests named TestInside there, or to report what became of the process.
const envRole = "NETDROP_TEST_ROLE"

func TestMain(m *testing.M) {
	MainIfProbe()
	role := os.Getenv(envRole)
	if role != "" {
		if err := Enter(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	if role == "process" {
		process()
	}
	os.Exit(m.Run())
}

// process reports its user, repeats a line, and ends by a signal with a status
// of its own.
func process() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	ns, _ := os.Readlink(namespace)
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	fmt.Println(os.Getpid(), os.Getppid(), os.Getuid(), ns, strings.Join(os.Args[1:], ","), line)
	<-signals
	os.Exit(42)
}

func outside(t *testing.T) {
	t.Helper()
	if Inside() {
		t.Skip("this one watches from outside, and was run there")
	}
	if err := Available(); err != nil {
		if os.Getuid() == 0 && !errors.Is(err, os.ErrPermission) {
			t.Fatal(err)
		}
		t.Skipf("THE KERNEL'S DROPS ARE NOT TESTED: %v", err)
	}
}

// users are those that a test can run this binary as: the present one and, for
// root, an unprivileged one, and a root that may make namespaces but no rules, as in some
// containers.
func users(t *testing.T) map[string]func(args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := func(path string, attr *syscall.SysProcAttr) func(...string) *exec.Cmd {
		return func(args ...string) *exec.Cmd {
			cmd := exec.Command(path, args...)
			cmd.Dir = "/"
			cmd.Env = append(os.Environ(), envRole+"=tests")
			cmd.SysProcAttr = attr
			return cmd
		}
	}
	as := map[string]func(...string) *exec.Cmd{"ourselves": command(self, nil)}
	if os.Getuid() == 0 {
		// No other user may look into the folder of a test's binary.
		dir, err := os.MkdirTemp("", "netdrop-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		data, err := os.ReadFile(self)
		if err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(dir, "netdrop.test")
		if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(program, data, 0o755)); err != nil {
			t.Fatal(err)
		}
		if setpriv, err := exec.LookPath("setpriv"); err == nil {
			as["half a root"] = func(args ...string) *exec.Cmd {
				return command(setpriv, nil)(append([]string{"--bounding-set=-net_admin", "--inh-caps=-all", self}, args...)...)
			}
		} else {
			t.Logf("WITHOUT setpriv A ROOT WITH FEWER RIGHTS IS NOT TESTED: %v", err)
		}
		as["unprivileged"] = command(program, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})
	}
	return as
}

func TestAvailableComesBack(t *testing.T) {
	outside(t)
	before, _ := os.Readlink(namespace)
	for range 20 {
		if err := Available(); err != nil {
			t.Fatal(err)
		}
	}
	// Every thread that there is by now, not only this one.
	links, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil || len(links) == 0 {
		t.Fatal(links, err)
	}
	for _, l := range links {
		if after, err := os.Readlink(l); err == nil && before != after {
			t.Errorf("%s is in %s instead of %s", l, after, before)
		}
	}
}

// A program whose main is no probe gets an error, and does not run its tests.
func TestAvailableWithoutHook(t *testing.T) {
	t.Setenv(envProbe, "1")
	if err := Available(); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "MainIfProbe") {
		t.Errorf("a probe within a probe: %v", err)
	}
}

// TestInNamespace runs the tests named TestInside in a namespace, as root and
// as a user without rights, and looks from outside that nothing is left.
func TestInNamespace(t *testing.T) {
	outside(t)
	for name, command := range users(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := command("-test.run=^TestInside", "-test.v", "-test.count=1", fmt.Sprintf("-long=%v", *long))
			out, err := cmd.CombinedOutput()
			if err != nil || bytes.Count(out, []byte("--- PASS: TestInside")) < 5 || bytes.Contains(out, []byte("--- SKIP")) {
				t.Errorf("%v\n%s", err, out)
			}
			nothingOutside(t)
		})
	}
}

// nothingOutside looks at the machine's own rules, where we may.
func nothingOutside(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	for _, name := range tables(t) {
		if strings.HasPrefix(name, "lockbench-") {
			t.Errorf("outside there is a table %s", name)
		}
	}
}

// tables lists the tables of rules in this network namespace.
func tables(t *testing.T) (names []string) {
	t.Helper()
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.ListTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range all {
		names = append(names, table.Name)
	}
	return names
}

// TestEnterKeepsTheProcess: its pid, its parent, its user, its arguments, its
// standard input, its signals and its status.
func TestEnterKeepsTheProcess(t *testing.T) {
	outside(t)
	here, _ := os.Readlink(namespace)
	for name, command := range users(t) {
		t.Run(name, func(t *testing.T) {
			cmd := command("a b", "c")
			cmd.Env = append(cmd.Env, envRole+"=process")
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			if err != nil {
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
			if _, err := io.WriteString(in, "line\n"); err != nil {
				t.Fatal(err)
			}
			uid := os.Getuid()
			if c := cmd.SysProcAttr; c != nil {
				uid = int(c.Credential.Uid)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatalf("%q, %v", line, err)
			}
			link := fmt.Sprintf("/proc/%d/ns/net", cmd.Process.Pid)
			there, err := os.Readlink(link)
			if want := fmt.Sprintln(cmd.Process.Pid, os.Getpid(), uid, there, "a b,c", "line"); line != want || err != nil || there == here {
				t.Errorf("it says %q, want %q (%v); we are in %s", line, want, err, here)
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 42 {
				t.Errorf("it ended by %v, want status 42", cmd.ProcessState)
			}
		})
	}
}

// Without a namespace of one's own there is no way to make a rule, whatever was
// left behind in the environment.
func TestOpenOutsideIsRefused(t *testing.T) {
	outside(t)
	here, err := os.Readlink(namespace)
	if err != nil {
		t.Fatal(err)
	}
	left := []string{"", here}
	if all, err := net.Interfaces(); err == nil && !isolated(all) {
		left = append(left, "net:[1]")
	} else {
		t.Logf("THIS MACHINE HAS NO NETWORK: that a run keeps off it is not tested (%v)", err)
	}
	for _, env := range left {
		t.Setenv(envOutside, env)
		if d, err := Open(); !errors.Is(err, ErrUnavailable) {
			t.Errorf("with %q in the environment it opened %v, %v", env, d, err)
			if err == nil {
				_ = d.Close()
			}
		}
	}
}

func TestIsolated(t *testing.T) {
	lo := net.Interface{Name: "lo", Flags: net.FlagUp | net.FlagLoopback}
	for _, tt := range []struct {
		name string
		all  []net.Interface
		want bool
	}{
		{"a new namespace", []net.Interface{{Name: "lo", Flags: net.FlagLoopback}}, true},
		{"one with tunnels that the kernel made", []net.Interface{lo, {Name: "tunl0"}, {Name: "sit0"}}, true},
		{"a machine", []net.Interface{lo, {Name: "eth0", Flags: net.FlagUp | net.FlagBroadcast}}, false},
	} {
		if got := isolated(tt.all); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
