package recipetest

import (
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// RetryUntilAcquired tries a free key until it is granted, as after a failover:
// a try may fail or be unknown, but not busy.
func RetryUntilAcquired(t testing.TB, c impls.Client, key string) impls.Hold {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		a := NewAttempt()
		h, err := c.TryAcquire(t.Context(), key, a)
		switch {
		case err == nil:
			return h
		case errors.Is(err, impls.ErrUnknown):
			_ = CleanUp(t, c, key, a)
		case !errors.Is(err, impls.ErrFailed):
			t.Fatalf("try a free key: %v", err)
		}
		backOff(t, end, err)
	}
}

// Settle releases a hold until the answer is definite: nil or ErrLost.
func Settle(t testing.TB, h impls.Hold) error {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		err := h.Release(t.Context())
		switch {
		case impls.Definite(err):
			return err
		case !errors.Is(err, impls.ErrUnknown) && !errors.Is(err, impls.ErrFailed):
			t.Fatalf("release: %v", err)
		}
		backOff(t, end, err)
	}
}

// patience is for a request that hangs, not for a slow one.
const patience = time.Minute

// backOff waits before a retry, and fails the test after end: err is the last
// result.
func backOff(t testing.TB, end time.Time, err error) {
	t.Helper()
	if time.Now().After(end) {
		t.Fatalf("no success in %v, the last error is: %v", patience, err)
	}
	if err := impls.SystemClock().Sleep(t.Context(), 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
}
