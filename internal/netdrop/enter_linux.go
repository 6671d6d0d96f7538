package netdrop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// envOutside, in the environment, is the namespace that the run left: a
	// process that is in another one is inside.
	envOutside = "LOCKBENCH_NETNS_OUTSIDE"
	// envProbe makes a process try what Available asks for, and end.
	envProbe = "LOCKBENCH_NETDROP_PROBE"
)

// probed is what a probe prints when everything worked.
const probed = "packets can be dropped"

// probeLimit is how long a probe may take.
const probeLimit = 10 * time.Second

// MainIfProbe turns a process that Available started into the probe, and does
// not return then; in any other process it does nothing. Call it first in main
// (for go test: in TestMain).
func MainIfProbe() {
	if os.Getenv(envProbe) == "" {
		return
	}
	if err := try(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(probed)
	os.Exit(0)
}

// Available returns why the kernel cannot be made to drop packets here
// (ErrUnavailable), or nil. It finds out by doing it, in a namespace made for
// the purpose; that takes some milliseconds.
func Available() error {
	if os.Getenv(envProbe) != "" {
		return fmt.Errorf("%w: this process is to be a probe, but its main does not call netdrop.MainIfProbe", ErrUnavailable)
	}
	if Inside() {
		return nil
	}
	_, err := wayIn()
	return err
}

// wayIn finds out how this process gets into a namespace of its own in which
// packets can be dropped: by itself (no command), or by being run anew by a
// command.
func wayIn() (through []string, err error) {
	err = tryOnThread()
	if errors.Is(err, fs.ErrPermission) {
		through, err = throughUnshare()
		if err == nil {
			err = tryInChild(through)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return through, nil
}

// try sets the present namespace up, and cuts a pair.
func try() error {
	if err := settle(); err != nil {
		return err
	}
	d, err := open(nil)
	if err != nil {
		return err
	}
	pair := Pair{Client: netip.MustParseAddr("127.77.0.1"), Server: netip.MustParseAddrPort("127.0.0.1:1")}
	err = d.Apply("probe", []Pair{pair}, true, true)
	if err == nil {
		_, err = d.Lift("probe")
	}
	return errors.Join(err, d.Close())
}

// tryOnThread tries it as a user who may make namespaces: on one thread, which
// comes back from there.
func tryOnThread() error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err, back := visit(try)
		if back {
			runtime.UnlockOSThread() // else the thread ends with this goroutine
		}
		done <- err
	}()
	return <-done
}

// visit calls f with the present thread in a new network namespace, and reports
// whether the thread is back in its old one.
func visit(f func() error) (err error, back bool) {
	old, err := os.Open(namespace)
	if err != nil {
		return fmt.Errorf("look at the network namespace: %w", err), true
	}
	defer old.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make a network namespace: %w", err), true
	}
	err = f()
	if backErr := unix.Setns(int(old.Fd()), unix.CLONE_NEWNET); backErr != nil {
		return errors.Join(err, fmt.Errorf("leave the network namespace: %w", backErr)), false
	}
	return err, true
}

// tryInChild tries it as everybody else: in a process with namespaces of its
// own for users and for the network.
func tryInChild(through []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), probeLimit)
	defer cancel()
	// A test binary whose TestMain is no probe must not run its tests.
	cmd := exec.CommandContext(ctx, through[0], append(through[1:len(through):len(through)], "-test.run=^$")...)
	cmd.Env = append(os.Environ(), envProbe+"=1")
	out, err := cmd.CombinedOutput()
	text := string(bytes.TrimSpace(out))
	switch {
	case err == nil && text == probed:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("a probe in a user namespace did not end within %v", probeLimit)
	case err == nil:
		return fmt.Errorf("the program is no probe: its main must call netdrop.MainIfProbe (it printed %.100q)", text)
	}
	if hint := forbidden(); hint != "" {
		text += "; " + hint
	}
	return fmt.Errorf("user namespaces are not allowed here, or not enough: %s (%w)", text, err)
}

// throughUnshare is the command that runs this program with namespaces of its
// own, as its present user and with all rights over them. Only a process of one
// thread may make a user namespace for itself, which a Go program never is.
func throughUnshare() ([]string, error) {
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return nil, fmt.Errorf("only a superuser can do without the program unshare, of the package util-linux: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return []string{unshare, "--user", "--map-current-user", "--keep-caps", "--net", "--", self}, nil
}

// forbidden names the setting that forbids user namespaces, if one does.
func forbidden() string {
	for _, s := range []struct{ name, forbids string }{
		{"kernel/unprivileged_userns_clone", "0"},
		{"user/max_user_namespaces", "0"},
		{"kernel/apparmor_restrict_unprivileged_userns", "1"},
	} {
		if v, err := os.ReadFile("/proc/sys/" + s.name); err == nil && strings.TrimSpace(string(v)) == s.forbids {
			return fmt.Sprintf("the sysctl %s is %s", strings.ReplaceAll(s.name, "/", "."), s.forbids)
		}
	}
	return ""
}

const namespace = "/proc/thread-self/ns/net"

// Inside reports whether this process is in the network namespace of a run, or
// of a process that entered one.
func Inside() bool {
	outside := os.Getenv(envOutside)
	now, err := os.Readlink(namespace)
	if outside == "" || err != nil || now == outside {
		return false
	}
	// A variable that was left behind in an environment must not make the
	// machine's own network ours.
	all, err := net.Interfaces()
	return err == nil && isolated(all)
}

// isolated reports whether nothing that interfaces of a network namespace do is
// seen beyond it.
func isolated(all []net.Interface) bool {
	return !slices.ContainsFunc(all, func(i net.Interface) bool {
		return i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0
	})
}

// Enter puts this process into a network namespace of its own, where the only
// interface is a loopback. It does so by executing the program anew, with the
// same arguments, under the same pid: on the way in it does not return unless
// it fails, and inside it sets the namespace up and returns nil. Call it before
// anything is opened, started or printed. A process that is inside and calls it
// again changes nothing.
func Enter() error {
	if Inside() {
		return settle()
	}
	now, err := os.Readlink(namespace)
	if err != nil {
		return fmt.Errorf("look at the network namespace: %w", err)
	}
	through, err := wayIn()
	if err != nil {
		return err
	}
	// Of two variables of a name the first would count.
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, envOutside+"=") })
	env = append(env, envOutside+"="+now)
	if through != nil {
		return fmt.Errorf("enter a network namespace: %w", syscall.Exec(through[0], append(through, os.Args[1:]...), env))
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	// The namespace is this thread's; to execute a program from it ends all
	// other threads, and this one becomes the process. Where that fails the
	// thread is in the namespace and stays locked, so that no goroutine of others
	// comes to run there.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("make a network namespace: %w", err)
	}
	return fmt.Errorf("enter a network namespace: %w", syscall.Exec(self, os.Args, env))
}
