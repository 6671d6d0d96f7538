package impls_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

func TestRules(t *testing.T) {
	first := impls.Rule{Name: "first", Match: impls.Is(io.ErrNoProgress), Outcome: impls.ErrBusy}
	rules := append(impls.Rules{first, impls.NotConnected()}, impls.NoEffect(io.ErrNoProgress, io.ErrShortWrite)...)
	recipetest.Rules(t, rules[:2], map[string]error{"first": io.ErrNoProgress, "connect": &impls.ConnectError{Err: io.EOF}})
	if got := rules.Outcome(io.ErrNoProgress); !errors.Is(got, impls.ErrBusy) || errors.Is(got, impls.ErrFailed) {
		t.Errorf("not the first rule that matches, but %v", got)
	}
	if rules.Outcome(nil) != nil || impls.NotSent(nil) != nil {
		t.Error("success has an error")
	}
	if got := impls.NotSent(io.EOF); impls.Outcome(history.KindAcquire, got) != history.Failed || !errors.Is(got, io.EOF) {
		t.Errorf("not sent: %v", got)
	}
	if got := (impls.Rules{}).Outcome(io.EOF); impls.Outcome(history.KindAcquire, got) != history.Unknown {
		t.Errorf("an empty table: %v", got)
	}
}

func TestDefinite(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, true}, {impls.ErrLost, true}, {fmt.Errorf("release: %w", impls.ErrLost), true},
		{impls.ErrFailed, false}, {impls.ErrUnknown, false}, {io.EOF, false},
		{errors.Join(impls.ErrLost, impls.ErrUnknown), false},
	} {
		if impls.Definite(c.err) != c.want {
			t.Errorf("%v: definite: %t", c.err, !c.want)
		}
	}
}

func TestMarkDial(t *testing.T) {
	dial := impls.MarkDial(func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF })
	c, err := dial(t.Context(), "tcp", "nowhere")
	if c != nil || !impls.As[*impls.ConnectError](err) || !errors.Is(err, io.EOF) {
		t.Errorf("%v, %v", c, err)
	}
	a, b := net.Pipe()
	defer b.Close()
	defer a.Close()
	dial = impls.MarkDial(func(context.Context, string, string) (net.Conn, error) { return a, nil })
	if c, err := dial(t.Context(), "tcp", "here"); c != a || err != nil {
		t.Errorf("%v, %v", c, err)
	}
}

// TestPoll: it asks until the answer is another than busy, and what ends it
// while it waits leaves nothing open.
func TestPoll(t *testing.T) {
	cfg := impls.Config{Clock: impls.SystemClock(), Wait: impls.NewUniform(0, 0, 0)}
	asked := 0
	answers := func(errs ...error) func(context.Context, string, impls.Attempt) (impls.Hold, error) {
		asked = 0
		return func(context.Context, string, impls.Attempt) (impls.Hold, error) {
			asked++
			return nil, errs[min(asked, len(errs))-1]
		}
	}
	busy := fmt.Errorf("by another: %w", impls.ErrBusy)
	if _, err := impls.Poll(t.Context(), cfg, "k", impls.Attempt{}, answers(impls.ErrBusy, busy, nil)); err != nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	for _, end := range []error{impls.ErrFailed, io.EOF, errors.Join(impls.ErrBusy, impls.ErrUnknown)} {
		if _, err := impls.Poll(t.Context(), cfg, "k", impls.Attempt{}, answers(busy, end)); err != end || asked != 2 {
			t.Errorf("asked %d times: %v, want %v", asked, err, end)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cfg.Wait = impls.NewUniform(time.Hour, time.Hour, 0)
	time.AfterFunc(time.Millisecond, cancel)
	_, err := impls.Poll(ctx, cfg, "k", impls.Attempt{}, answers(busy))
	recipetest.WantOutcome(t, "poll", err, impls.ErrFailed)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not say why", err)
	}
}

// TestLease: the end is counted from before the request and moves only with an
// answer; nothing is sent once an answer has said that the hold is over.
func TestLease(t *testing.T) {
	clock := &stepping{}
	var sent int
	var answer error
	send := func(context.Context) error { sent++; clock.step(time.Second); return answer }
	how := impls.Leaser{Clock: clock, TTL: time.Minute, Extend: send, Free: send}
	start := clock.Now()
	l := impls.NewLease("k", impls.Attempt{1}, 7, start, how)
	if l.Key() != "k" || l.Attempt() != (impls.Attempt{1}) || l.Fence() != 7 || l.Lost() != nil || !l.LeaseEnd().Equal(start.Add(time.Minute)) {
		t.Errorf("%+v", l)
	}
	for _, answer = range []error{nil, impls.ErrUnknown, impls.ErrFailed} {
		before, was := clock.Now(), l.LeaseEnd()
		if err := l.Extend(t.Context()); err != answer {
			t.Errorf("extend: %v, want %v", err, answer)
		}
		if answer == nil {
			was = before.Add(time.Minute)
		}
		if !l.LeaseEnd().Equal(was) {
			t.Errorf("after %v the end is %v, want %v", answer, l.LeaseEnd(), was)
		}
	}
	for _, answer = range []error{impls.ErrUnknown, impls.ErrFailed, nil} {
		if err := l.Release(t.Context()); err != answer {
			t.Errorf("release: %v, want %v", err, answer)
		}
	}
	fixed := impls.NewLease("k", impls.Attempt{1}, 7, start, impls.Leaser{Clock: clock, TTL: time.Minute, Free: send})
	if err := fixed.Extend(t.Context()); !errors.Is(err, errors.ErrUnsupported) || !fixed.LeaseEnd().Equal(start.Add(time.Minute)) {
		t.Errorf("extend what nothing renews: %v, until %v", err, fixed.LeaseEnd())
	}
	for _, end := range []error{nil, impls.ErrLost} {
		l := impls.NewLease("k", impls.Attempt{1}, 7, start, how)
		if answer = end; end == nil {
			_ = l.Release(t.Context())
		} else {
			_ = l.Extend(t.Context())
		}
		sent = 0
		if l.Release(t.Context()) != impls.ErrLost || l.Extend(t.Context()) != impls.ErrLost || sent != 0 {
			t.Errorf("after %v: sent %d more", end, sent)
		}
	}
}

// stepping is a clock that stands still between steps.
type stepping struct {
	impls.Clock
	now time.Time
}

func (c *stepping) Now() time.Time       { return c.now }
func (c *stepping) step(d time.Duration) { c.now = c.now.Add(d) }
