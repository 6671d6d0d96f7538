package recipetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// Rules checks a table of outcomes: every rule must have a sample under its
// name, which gets the rule's outcome with its cause wrapped. Samples without a
// rule are unknown, and so are errors that no table may list: broken
// connections, ended contexts, new errors.
func Rules(t *testing.T, rules impls.Rules, samples map[string]error) {
	t.Helper()
	walked := map[string]bool{}
	for _, r := range rules {
		walked[r.Name] = true
		cause, ok := samples[r.Name]
		if !ok {
			t.Errorf("no sample of %q: add one", r.Name)
			continue
		}
		for _, err := range []error{cause, fmt.Errorf("wrapped: %w", cause)} {
			got := rules.Outcome(err)
			if !errors.Is(got, r.Outcome) || !errors.Is(got, cause) || errors.Is(got, impls.ErrUnknown) {
				t.Errorf("%s: the outcome of %v is %v", r.Name, err, got)
			}
		}
	}
	doubts := []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded, context.Canceled, context.DeadlineExceeded,
		&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, // not marked as our dialer's
		errors.New("not in any table"),
	}
	for name, cause := range samples {
		if !walked[name] {
			doubts = append(doubts, cause)
		}
	}
	for _, cause := range doubts {
		got := rules.Outcome(cause)
		if o := impls.Outcome(history.KindAcquire, got); o != history.Unknown || !errors.Is(got, cause) {
			t.Errorf("the outcome of %v is %v, recorded as %s; want unknown", cause, got, o)
		}
	}
}

// Themselves are the samples of rules made by NoEffect: each error is its own
// sample.
func Themselves(errs ...error) map[string]error {
	samples := map[string]error{}
	for _, err := range errs {
		samples[err.Error()] = err
	}
	return samples
}
