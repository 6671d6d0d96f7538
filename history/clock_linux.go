package history

import "golang.org/x/sys/unix"

// kernelClock is what Go's own monotonic clock reads on Linux.
const kernelClock = unix.CLOCK_MONOTONIC
