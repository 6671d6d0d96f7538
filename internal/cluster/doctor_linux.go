package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/lockbench/lockbench/internal/backend"
	"golang.org/x/sys/unix"
)

func probeMemory(context.Context) Finding {
	f := Finding{Subject: "memory"}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		f.Why = err.Error()
		return f
	}
	const least = 2 << 30
	total := uint64(info.Totalram) * uint64(info.Unit)
	f.Works, f.Found = total >= least, fmt.Sprintf("%.1f GiB", float64(total)/(1<<30))
	if !f.Works {
		f.Why, f.Mend = "five servers, one of them a JVM, want 2 GiB", "run fewer backends at once by --recipe"
	}
	return f
}

// probeClock: stamps are cheap where the clock is read without a system call.
func probeClock(context.Context) Finding {
	f := Finding{Subject: "clock", Works: true, Found: "CLOCK_MONOTONIC"}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return Finding{Subject: "clock", Why: err.Error()}
	}
	const count = 1000
	began := time.Now()
	for range count {
		_ = time.Since(began)
	}
	each := time.Since(began) / count
	f.Found = fmt.Sprintf("CLOCK_MONOTONIC, read in %v", each)
	if source, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource"); err == nil {
		f.Found += ", source " + strings.TrimSpace(string(source))
	}
	if each > time.Microsecond {
		f.Works = false
		f.Why = "reading the clock is slow (a system call each time): it weighs on every figure below 10 µs"
		f.Mend = "choose the clock source tsc or kvm-clock, if the machine has it"
	}
	return f
}

func probeOrphans(context.Context) Finding {
	return Finding{Subject: "kill -9 of lockbench", Works: true, Found: "the kernel ends servers and workers with it (parent-death signal)"}
}

func probeUserNamespaces(ctx context.Context) Finding {
	f := Finding{Subject: "user namespaces"}
	if err := inNamespaces(ctx, syscall.CLONE_NEWUSER, "true"); err != nil {
		f.Why = err.Error()
		f.Mend = "sysctl kernel.unprivileged_userns_clone=1 (Debian) or kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); in a container, allow unshare"
		return f
	}
	f.Works, f.Found = true, "a process could be started in one"
	return f
}

func probeNetNamespaces(ctx context.Context) Finding {
	f := Finding{Subject: "network namespaces"}
	if err := inNamespaces(ctx, syscall.CLONE_NEWNET, "true"); err != nil {
		f.Why, f.Mend = err.Error(), "run as root, or allow user namespaces"
		return f
	}
	f.Works, f.Found = true, "a process could be started in one"
	return f
}

func probeNetem(ctx context.Context) Finding {
	f := Finding{Subject: "tc netem"}
	tc := backend.Lookup("tc")
	if tc == "" {
		f.Why, f.Mend = "tc was not found", "apt-get install --no-install-recommends iproute2"
		return f
	}
	if err := inNamespaces(ctx, syscall.CLONE_NEWNET, tc, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"); err != nil {
		f.Why = err.Error()
		f.Mend = "use a kernel with the module sch_netem (modprobe sch_netem); delays can be injected by proxy without it"
		return f
	}
	f.Works, f.Found = true, tc+" delayed a loopback device of its own"
	return f
}

// inNamespaces runs a program in new namespaces, with those of users where we
// are not root.
func inNamespaces(ctx context.Context, flags uintptr, program string, args ...string) error {
	path := program
	if !strings.HasPrefix(path, "/") {
		if path = backend.Lookup(program); path == "" {
			return fmt.Errorf("the program %s was not found", program)
		}
	}
	cmd := exec.CommandContext(ctx, path, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if os.Geteuid() != 0 {
		flags |= syscall.CLONE_NEWUSER
	}
	attr := &syscall.SysProcAttr{Cloneflags: flags}
	if flags&syscall.CLONE_NEWUSER != 0 {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	cmd.SysProcAttr = attr
	err := cmd.Run()
	text := strings.Join(strings.Fields(out.String()), " ")
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return errors.New("the kernel, or a sandbox around us, does not permit it")
	case text != "":
		return errors.New(text)
	default:
		return err
	}
}

// memoryDisk names the file system of dir if it is held in memory.
func memoryDisk(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return ""
	}
	switch int64(st.Type) {
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.RAMFS_MAGIC:
		return "ramfs"
	}
	return ""
}
