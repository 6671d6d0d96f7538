package history

import "golang.org/x/sys/unix"

// kernelClock is the one that Go's monotonic clock runs with on macOS: it
// counts Mach's ticks and stands still while the machine sleeps. CLOCK_MONOTONIC
// goes on during sleep there, and would drift away from Go's differences.
const kernelClock = unix.CLOCK_UPTIME_RAW
