package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

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
