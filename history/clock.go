package history

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// Clock reads the machine's monotonic clock cheaply. All processes of one
// machine that stamp with a Clock stamp on the same scale.
//
// Go does not show the value of its monotonic clock, only differences; asking
// the kernel for it by a system call costs ten times as much. A Clock asks once,
// and afterwards adds Go's differences to that answer. A Clock is a value, may
// be copied, and may be used by many goroutines at once. The zero Clock counts
// from the year 1 and is of no use: take NewClock.
type Clock struct {
	base        time.Time
	offset      int64 // the kernel's stamp at base
	uncertainty int64
}

// clockTries is how often NewClock asks: each try may be spoiled by an
// interruption between its two readings, all of them hardly.
const clockTries = 64

// NewClock measures the offset between Go's clock and the kernel's: each try
// reads Go's clock, the kernel's, and Go's again, and the tightest bracket
// wins. It takes some 20 microseconds.
func NewClock() Clock {
	c := Clock{base: time.Now(), uncertainty: -1}
	for range clockTries {
		var ts unix.Timespec
		before := time.Since(c.base)
		err := unix.ClockGettime(kernelClock, &ts)
		after := time.Since(c.base)
		if err != nil {
			continue // has not been seen; a Clock with no good try is marked below
		}
		half := int64(after-before+1) / 2
		if c.uncertainty < 0 || half < c.uncertainty {
			c.uncertainty = half
			c.offset = ts.Nano() - int64(before) - half
		}
	}
	if c.uncertainty < 0 {
		// Without the kernel's clock, the clocks of processes can only be
		// compared by the wall clock; a second of uncertainty keeps every
		// close call undecided.
		c.offset = c.base.UnixNano()
		c.uncertainty = int64(time.Second)
	}
	return c
}

// Now returns the current stamp in nanoseconds. It does not allocate and makes
// no system call.
func (c Clock) Now() int64 { return c.offset + int64(time.Since(c.base)) }

// Uncertainty returns by how many nanoseconds the stamps of this Clock may be
// off from the kernel's, and so from those of another process (whose own
// uncertainty comes on top). Stamps of one Clock are exact among themselves.
func (c Clock) Uncertainty() int64 { return c.uncertainty }

// At returns the stamp of a time that was read in this process by time.Now or
// derived from one. A time without Go's monotonic reading (parsed, or from
// another process) is converted by the wall clock and is as wrong as that.
func (c Clock) At(t time.Time) int64 { return c.offset + int64(t.Sub(c.base)) }

// Time returns the time of a stamp, with a monotonic reading of this process,
// so that it may be used for deadlines.
func (c Clock) Time(stamp int64) time.Time { return c.base.Add(time.Duration(stamp - c.offset)) }

// SleepUntil waits for a stamp that may be past, or until ctx ends; then it
// returns its error.
func (c Clock) SleepUntil(ctx context.Context, stamp int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	timer := time.NewTimer(time.Duration(stamp - c.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
