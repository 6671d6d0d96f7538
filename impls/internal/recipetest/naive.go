package recipetest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// Dies is the Steps of a client that ends at a step, as a process killed there.
// Its call runs on the goroutine of RunUntilDeath.
type Dies impls.Step

// Reach ends the goroutine if s is the step.
func (d Dies) Reach(_ context.Context, s impls.Step) {
	if s == impls.Step(d) {
		runtime.Goexit()
	}
}

// RunUntilDeath runs call on a goroutine that call may end.
func RunUntilDeath(call func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	<-done
}

// Wall is a clock that stands still until it is moved; Sleep and AfterFunc use the
// machine's clock. It is safe for concurrent use.
type Wall struct {
	impls.Clock
	mu  sync.Mutex
	now time.Time
}

// NewWall is a clock that starts at the same time in every run.
func NewWall() *Wall { return &Wall{Clock: impls.SystemClock(), now: time.Unix(1_700_000_000, 0)} }

// Now is the time that was set.
func (w *Wall) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// Advance moves the clock by d, which may be negative.
func (w *Wall) Advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// Find finds a recipe of a package's list, or fails the test.
func Find(t testing.TB, recipes []impls.Recipe, id string) impls.Recipe {
	t.Helper()
	i := slices.IndexFunc(recipes, func(r impls.Recipe) bool { return r.Info().ID == id })
	if i < 0 {
		t.Fatalf("%s is missing", id)
	}
	return recipes[i]
}

// Within fails the test if a hold's lease has ended by clock: then the test has not
// shown anything about a live holder.
func Within(t testing.TB, h impls.Hold, clock impls.Clock) {
	t.Helper()
	if !clock.Now().Before(h.LeaseEnd()) {
		t.Error("the holder's lease was over")
	}
}

// Try tries, or fails the test.
func Try(t testing.TB, c impls.Client, key string) impls.Hold {
	t.Helper()
	h, err := c.TryAcquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "try", err, nil)
	return h
}

// TryBeside tries on another goroutine.
func TryBeside(t testing.TB, c impls.Client, key string) <-chan error {
	got := make(chan error, 1)
	go func() {
		_, err := c.TryAcquire(t.Context(), key, NewAttempt())
		got <- err
	}()
	return got
}

// Busy fails the test unless a try is busy.
func Busy(t testing.TB, c impls.Client, key string) {
	t.Helper()
	_, err := c.TryAcquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "try", err, impls.ErrBusy)
}

// Blind is a recipe that stores a TTL and no owner.
type Blind struct {
	// Open opens a client with that dialer; nil is the plain dialer.
	Open func(t *testing.T, dial impls.DialFunc) impls.Client
	// Lapse removes a key, as its expiry does.
	Lapse func(t *testing.T, key string)
}

// Record checks that a client removes only what its own record contains, since
// the lock does not store the owner.
func (b Blind) Record(t *testing.T) {
	first, second, key := b.Open(t, nil), b.Open(t, nil), NewKey()
	h := Try(t, first, key)
	if err := h.Extend(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("extend: %v", err)
	}
	WantOutcome(t, "another client's clean-up", second.Cleanup(t.Context(), key, h.Attempt()), impls.ErrLost)
	WantOutcome(t, "a clean-up of nothing", first.Cleanup(t.Context(), key, NewAttempt()), impls.ErrLost)
	Busy(t, second, key)
	WantOutcome(t, "clean-up", first.Cleanup(t.Context(), key, h.Attempt()), nil)
	// A release after that must not free the successor's lock.
	next := Try(t, second, key)
	WantOutcome(t, "release", h.Release(t.Context()), impls.ErrLost)
	Busy(t, first, key)
	// A lock that the server dropped is reported lost, as the reply shows.
	b.Lapse(t, key)
	WantOutcome(t, "release", next.Release(t.Context()), impls.ErrLost)
}

// Doubt checks that a clean-up after an unknown outcome frees the lock of any
// holder: a lock without an owner allows no more. This is how they fail.
func (b Blind) Doubt(t *testing.T) {
	network := &lossyNetwork{}
	first, second, key := b.Open(t, nil), b.Open(t, network.dial), NewKey()
	h := Try(t, first, key)
	network.set(true)
	doubtful := NewAttempt()
	_, err := second.TryAcquire(t.Context(), key, doubtful)
	WantOutcome(t, "try without an answer", err, impls.ErrUnknown)
	network.set(false)
	WantOutcome(t, "clean-up", CleanUp(t, second, key, doubtful), nil)
	Try(t, second, key)
	Within(t, h, impls.SystemClock())
}

// Skew checks a lock that uses the clients' clocks and lasts for the time over:
// a client whose clock is ahead by that or more takes the lock from a live
// holder; a client that is ahead by less does not.
func Skew(t *testing.T, over time.Duration, open func(impls.Clock) impls.Client) {
	for _, ahead := range []time.Duration{0, over - time.Second, over} {
		clock, fast := NewWall(), NewWall()
		fast.Advance(ahead)
		a, b, key := open(clock), open(fast), NewKey()
		h := Try(t, a, key)
		if ahead < over {
			Busy(t, b, key)
			continue
		}
		Try(t, b, key)
		Within(t, h, clock)
	}
}
