package impls_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/lockbench/lockbench/impls"
)

// TestClaims: what may be there is remembered until an answer is definite, and
// of nothing else is a request sent.
func TestClaims(t *testing.T) {
	doubt := fmt.Errorf("%w: no answer", impls.ErrUnknown)
	for _, c := range []struct {
		name         string
		took, ended  error
		asked, again bool
	}{
		{"taken and ended", nil, nil, true, false},
		{"taken, and found lost", nil, impls.ErrLost, true, false},
		{"taken, and ended by a request in doubt", nil, doubt, true, true},
		{"taken, and the end was refused", nil, impls.ErrFailed, true, true},
		{"taken, and lost or in doubt", nil, errors.Join(impls.ErrLost, doubt), true, true},
		{"taken by a request in doubt", doubt, nil, true, false},
		{"refused", impls.ErrBusy, nil, false, false},
		{"not sent", impls.NotSent(context.Canceled), nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			claims, a := impls.Claims[string]{}, impls.Attempt{1}
			if err := claims.Took(a, "it", c.took); !errors.Is(err, c.took) {
				t.Errorf("took: %v, want %v", err, c.took)
			}
			asked := 0
			end := func(_ context.Context, what string) error {
				if what != "it" {
					t.Errorf("asked to end %q", what)
				}
				asked++
				return c.ended
			}
			err := claims.Finish(t.Context(), a, end)
			if want := c.ended; c.asked && !errors.Is(err, want) || !c.asked && !errors.Is(err, impls.ErrLost) {
				t.Errorf("finish: %v", err)
			}
			err = claims.Finish(t.Context(), a, end)
			if !c.again && !errors.Is(err, impls.ErrLost) {
				t.Errorf("finish again: %v", err)
			}
			want := 0
			if c.asked {
				want++
			}
			if c.again {
				want++
			}
			if asked != want {
				t.Errorf("%d requests were sent, want %d", asked, want)
			}
		})
	}
}

// TestSettled: a definite answer is returned unchanged; another one names what
// was being done.
func TestSettled(t *testing.T) {
	for _, err := range []error{nil, impls.ErrLost} {
		if got := impls.Settled("release", "k", err); got != err {
			t.Errorf("%v came to %v", err, got)
		}
	}
	got := impls.Settled("release", "k", impls.ErrUnknown)
	if !errors.Is(got, impls.ErrUnknown) || got.Error() != "release k: outcome unknown" {
		t.Errorf("a doubt came to %v", got)
	}
}
