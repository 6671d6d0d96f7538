package zookeeper

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

func TestOutcomes(t *testing.T) {
	check := func(err error, p phase, want history.Outcome) {
		t.Helper()
		got := outcome(err, p)
		if o := impls.Outcome(history.KindAcquire, got); o != want {
			t.Errorf("%v (phase %d) is %v, want %v", err, p, o, want)
		}
		if !errors.Is(got, err) {
			t.Errorf("%v hides %v", got, err)
		}
	}
	for _, err := range refusals() {
		check(err, sent, history.Failed)
	}
	// Each of these may be followed by the request's effect.
	doubts := []error{
		zk.ErrConnectionClosed, zk.ErrClosing, zk.ErrUnknown, zk.ErrAPIError, zk.ErrNothing,
		context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF,
		errors.New("unknown error: -5"), // how the driver names codes that it does not know
	}
	for _, err := range doubts {
		check(err, sent, history.Unknown)
		check(err, notSent, history.Failed)
	}
	if outcome(nil, sent) != nil || outcome(nil, notSent) != nil {
		t.Error("success has an error")
	}
}

func TestNumber(t *testing.T) {
	const a = "0123456789abcdef0123456789abcdef"
	for name, want := range map[string]int32{
		a + "-0000000000": 0,
		a + "-0000000017": 17,
		a + "-2147483647": 1<<31 - 1,
	} {
		if got, ok := number(name); !ok || got != want {
			t.Errorf("%s: %d, %t, want %d", name, got, ok, want)
		}
	}
	for _, name := range []string{"", a, a + "-", a + "_0000000001", a + "--2147483648", a + "-4294967296", a + "-x", "lock-0000000001"} {
		if got, ok := number(name); ok {
			t.Errorf("%q: taken for number %d", name, got)
		}
	}
}
