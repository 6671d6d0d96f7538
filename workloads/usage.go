package workloads

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what this process has spent on CPUs, in user and system mode.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0 // cannot fail for ourselves
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// maxRSS is the most memory that this process ever had, in bytes.
func maxRSS() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return u.Maxrss // bytes there, KiB elsewhere
	}
	return u.Maxrss << 10
}
