package impls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/lockbench/lockbench/history"
)

// Only listed errors are definite; whatever else comes back, and whatever
// joins a doubt, is unknown.
func TestOutcome(t *testing.T) {
	for _, tc := range []struct {
		name string
		kind history.Kind
		err  error
		want history.Outcome
	}{
		{"held", history.KindAcquire, nil, history.Held},
		{"held at once", history.KindTry, nil, history.Held},
		{"released", history.KindRelease, nil, history.Released},
		{"cleaned up", history.KindCleanup, nil, history.Released},
		{"extended", history.KindExtend, nil, history.Extended},
		{"busy", history.KindTry, fmt.Errorf("try: %w", ErrBusy), history.Busy},
		{"lost", history.KindRelease, fmt.Errorf("release: %w", ErrLost), history.Lost},
		{"failed", history.KindAcquire, fmt.Errorf("dial: %w", ErrFailed), history.Failed},
		{"not supported", history.KindExtend, errors.ErrUnsupported, history.Failed},
		{"unknown", history.KindAcquire, ErrUnknown, history.Unknown},
		{"an error of no list", history.KindAcquire, errors.New("what is this"), history.Unknown},
		{"the end of a stream", history.KindRelease, io.EOF, history.Unknown},
		{"a deadline", history.KindAcquire, context.DeadlineExceeded, history.Unknown},
		{"called off", history.KindAcquire, context.Canceled, history.Unknown},
		{"a failure and a doubt", history.KindAcquire, errors.Join(ErrFailed, ErrUnknown), history.Unknown},
		{"a loss and a doubt", history.KindRelease, fmt.Errorf("%w: %w", ErrLost, ErrUnknown), history.Unknown},
	} {
		if got := Outcome(tc.kind, tc.err); got != tc.want {
			t.Errorf("%s: a %s that returned %v came to %s, want %s", tc.name, tc.kind, tc.err, got, tc.want)
		}
	}
}
