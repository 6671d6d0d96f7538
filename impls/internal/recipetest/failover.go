package recipetest

import (
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// RetryUntilAcquired tries a key that nobody holds until it is granted, as after a failover:
// it may be refused, or be in doubt, but may not be said to be another's.
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
			t.Fatalf("try a key that nobody holds: %v", err)
		}
		breathe(t, end, err)
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
		breathe(t, end, err)
	}
}

// patience is for what hangs, not for what is slow.
const patience = time.Minute

// breathe leaves servers in peace for a moment, and fails the test when end has
// come: err is what it still comes to.
func breathe(t testing.TB, end time.Time, err error) {
	t.Helper()
	if time.Now().After(end) {
		t.Fatalf("still, after %v: %v", patience, err)
	}
	if err := impls.SystemClock().Sleep(t.Context(), 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
}
