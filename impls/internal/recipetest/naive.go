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

// Dies is the Steps of a client that ends at a step for good, as a process that
// is killed there. Its call goes on the goroutine of LastWords.
type Dies impls.Step

// Reach ends the goroutine if s is the step.
func (d Dies) Reach(_ context.Context, s impls.Step) {
	if s == impls.Step(d) {
		runtime.Goexit()
	}
}

// LastWords runs call on a goroutine that it may end.
func LastWords(call func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	<-done
}

// Wall is a clock that stands still until it is moved; those who sleep by it
// sleep by the machine's. It is safe for concurrent use.
type Wall struct {
	impls.Clock
	mu  sync.Mutex
	now time.Time
}

// NewWall is a clock that shows the same time whenever the test is run.
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

// Within fails the test if a hold's lease is over by clock: then what was to be
// shown about a live holder was not.
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

// TryBeside tries beside the test.
func TryBeside(t testing.TB, c impls.Client, key string) <-chan error {
	got := make(chan error, 1)
	go func() {
		_, err := c.TryAcquire(t.Context(), key, NewAttempt())
		got <- err
	}()
	return got
}

// Busy fails the test unless a try is refused.
func Busy(t testing.TB, c impls.Client, key string) {
	t.Helper()
	_, err := c.TryAcquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "try", err, impls.ErrBusy)
}

// Blind is a recipe that stores a TTL and no owner.
type Blind struct {
	// Open opens a client that dials by dial; nil is the plain dialer.
	Open func(t *testing.T, dial impls.DialFunc) impls.Client
	// Lapse takes a key away, as its expiry does.
	Lapse func(t *testing.T, key string)
}

// Record: what a client may take out is told by its own record, since the lock
// does not tell.
func (b Blind) Record(t *testing.T) {
	first, second, key := b.Open(t, nil), b.Open(t, nil), NewKey()
	h := Try(t, first, key)
	if err := h.Extend(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("extend: %v", err)
	}
	WantOutcome(t, "another's clean-up", second.Cleanup(t.Context(), key, h.Attempt()), impls.ErrLost)
	WantOutcome(t, "a clean-up of nothing", first.Cleanup(t.Context(), key, NewAttempt()), impls.ErrLost)
	Busy(t, second, key)
	WantOutcome(t, "clean-up", first.Cleanup(t.Context(), key, h.Attempt()), nil)
	// A release after that must not free a successor.
	next := Try(t, second, key)
	WantOutcome(t, "release", h.Release(t.Context()), impls.ErrLost)
	Busy(t, first, key)
	// One that the server forgot is told as lost, since the reply says so.
	b.Lapse(t, key)
	WantOutcome(t, "release", next.Release(t.Context()), impls.ErrLost)
}

// Doubt: a clean-up after a doubt frees whoever has the lock, which is all that
// a lock without an owner allows. This is how they fail.
func (b Blind) Doubt(t *testing.T) {
	d := &deaf{}
	first, second, key := b.Open(t, nil), b.Open(t, d.dial), NewKey()
	h := Try(t, first, key)
	d.set(true)
	doubtful := NewAttempt()
	_, err := second.TryAcquire(t.Context(), key, doubtful)
	WantOutcome(t, "try without an answer", err, impls.ErrUnknown)
	d.set(false)
	WantOutcome(t, "clean-up", CleanUp(t, second, key, doubtful), nil)
	Try(t, second, key)
	Within(t, h, impls.SystemClock())
}

// Skew: of a lock that goes by the clients' clocks and locks for the time over,
// a client whose clock is ahead by that or more takes over from a live holder; one
// that is ahead by less does not.
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
