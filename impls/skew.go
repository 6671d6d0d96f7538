package impls

import (
	"sync/atomic"
	"time"
)

// SkewedClock is a clock that somebody sets: its Now is ahead of another's by as
// much as was set. It is what a client's wall clock is to a program that goes by
// it. How fast time passes does not change: Sleep and AfterFunc last as long as
// on the other. It is safe for concurrent use.
type SkewedClock struct {
	Clock
	by atomic.Int64
}

// NewSkewedClock is a clock that goes as base does, until it is set.
func NewSkewedClock(base Clock) *SkewedClock { return &SkewedClock{Clock: base} }

// Set sets the clock ahead of its base by so much, behind it if that is
// negative; 0 sets it right. It counts from the base, not from what was set
// before.
func (c *SkewedClock) Set(by time.Duration) { c.by.Store(int64(by)) }

// Now is the time that the clock shows. While it is set wrong that has no
// monotonic reading, so that what is computed from it goes by the clock's hands.
func (c *SkewedClock) Now() time.Time {
	now := c.Clock.Now()
	if by := c.by.Load(); by != 0 {
		return now.Round(0).Add(time.Duration(by)) // Round(0) takes the reading off
	}
	return now
}

// Monotonic is the base's, which nobody sets.
func (c *SkewedClock) Monotonic() time.Time { return Monotonic(c.Clock) }

// Monotonic is a time that passes by c whatever c is set to: it is for measuring
// how long something takes, and for saying when it will be over. Recipes count
// leases by it; only those whose servers store their clients' times ask for Now.
func Monotonic(c Clock) time.Time {
	if m, ok := c.(interface{ Monotonic() time.Time }); ok {
		return m.Monotonic()
	}
	return c.Now()
}
