package impls

import (
	"sync/atomic"
	"time"
)

// SkewedClock is a clock with an offset that a test or a fault sets. It stands
// for a client's wall clock. The rate of time does not change: Sleep and
// AfterFunc last as long as on the base clock. It is safe for concurrent use.
type SkewedClock struct {
	Clock
	by atomic.Int64
}

// NewSkewedClock is a clock without an offset from base.
func NewSkewedClock(base Clock) *SkewedClock { return &SkewedClock{Clock: base} }

// Set sets the offset from the base clock, replacing an earlier one; a negative
// offset sets the clock back.
func (c *SkewedClock) Set(by time.Duration) { c.by.Store(int64(by)) }

// Now is the time of the clock. With an offset it has no monotonic reading, so that
// computations use the wall clock.
func (c *SkewedClock) Now() time.Time {
	now := c.Clock.Now()
	if by := c.by.Load(); by != 0 {
		return now.Round(0).Add(time.Duration(by)) // Round(0) removes the monotonic reading
	}
	return now
}

// Monotonic is the base clock's, which no offset changes.
func (c *SkewedClock) Monotonic() time.Time { return Monotonic(c.Clock) }

// Monotonic is a time on c that no setting of the clock changes, for durations and
// deadlines. Recipes count leases by it; only recipes that store clients' times on
// servers use Now.
func Monotonic(c Clock) time.Time {
	if m, ok := c.(interface{ Monotonic() time.Time }); ok {
		return m.Monotonic()
	}
	return c.Now()
}
