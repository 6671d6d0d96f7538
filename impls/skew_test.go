package impls_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// TestSkewedClock: what is set changes what is shown, from the next look on, and
// not how fast time passes.
func TestSkewedClock(t *testing.T) {
	base := &stepping{now: time.Now()}
	clock := impls.NewSkewedClock(base)
	for _, by := range []time.Duration{0, time.Hour, -time.Hour, 2 * time.Hour, time.Nanosecond, 0} {
		clock.Set(by)
		now := clock.Now()
		if want := base.now.Round(0).Add(by); !now.Round(0).Equal(want) {
			t.Errorf("set by %v it shows %v, want %v", by, now, want)
		}
		// A monotonic reading would undo the skew in whatever is computed from
		// the time, and shows in its text.
		if has := strings.Contains(now.String(), "m="); has != (by == 0) {
			t.Errorf("set by %v it has a monotonic reading: %t", by, has)
		}
		if m := impls.Monotonic(clock); m.Sub(base.now) != 0 || !strings.Contains(m.String(), "m=") {
			t.Errorf("set by %v its monotonic time is %v from the base's", by, m.Sub(base.now))
		}
	}
	clock.Set(time.Hour)
	before := impls.Monotonic(clock)
	base.step(time.Second)
	if d := impls.Monotonic(clock).Sub(before); d != time.Second {
		t.Errorf("a second lasts %v", d)
	}
	// One skewed clock upon another adds up, and is as monotonic.
	if twice := impls.NewSkewedClock(clock); !impls.Monotonic(twice).Equal(base.now) {
		t.Errorf("a skewed clock's clock has the monotonic time %v, want %v", impls.Monotonic(twice), base.now)
	}
}

// TestSkewedClockSleeps: neither a sleep nor a timer ends sooner or later because
// the clock is set.
func TestSkewedClockSleeps(t *testing.T) {
	clock := impls.NewSkewedClock(impls.SystemClock())
	called := make(chan struct{})
	stop := clock.AfterFunc(time.Hour, func() { t.Error("called an hour early") })
	clock.AfterFunc(time.Millisecond, func() { close(called) })
	start := time.Now()
	clock.Set(2 * time.Hour)
	if err := clock.Sleep(t.Context(), 2*time.Millisecond); err != nil || time.Since(start) < 2*time.Millisecond {
		t.Errorf("slept %v: %v", time.Since(start), err)
	}
	clock.Set(-2 * time.Hour)
	<-called
	if !stop() {
		t.Error("the timer of an hour has fired")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if clock.Sleep(ctx, time.Hour) == nil {
		t.Error("slept though the context was over")
	}
}

// TestLeaseUnderSkew: a clock that is set neither prolongs a lease nor ends it.
func TestLeaseUnderSkew(t *testing.T) {
	base := &stepping{now: time.Now()}
	clock := impls.NewSkewedClock(base)
	send := func(context.Context) error { base.step(time.Second); return nil }
	l := impls.NewLease("k", impls.Attempt{1}, 0, impls.Monotonic(clock), impls.Leaser{Clock: clock, TTL: time.Minute, Extend: send, Free: send})
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		clock.Set(by)
		asked := base.now
		if err := l.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := l.LeaseEnd().Sub(asked); left != time.Minute {
			t.Errorf("set by %v, a lease of a minute ends after %v", by, left)
		}
	}
}
