package workloads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// once grants the lock one time and then blocks until the acquire's context
// ends, so that a history holds exactly one round.
func once(h impls.Hold) func(context.Context, int) (impls.Hold, error) {
	return func(ctx context.Context, n int) (impls.Hold, error) {
		if n == 0 {
			return h, nil
		}
		<-ctx.Done()
		return nil, fmt.Errorf("gave up: %w", impls.ErrFailed)
	}
}

// firstRound is the words of the calls of the first attempt.
func firstRound(h *history.History) (words []string) {
	for _, c := range h.Calls {
		if c.Attempt != h.Calls[0].Attempt {
			break
		}
		w := c.Kind.String() + " " + c.Outcome.String()
		if c.Flags&history.FlagFenced != 0 {
			w += " fenced"
		}
		if c.Flags&history.FlagLeaseTimer != 0 {
			w += " timer"
		}
		words = append(words, w)
	}
	return words
}

func expectRound(t *testing.T, h *history.History, want ...string) {
	t.Helper()
	if got := firstRound(h); !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

func TestRound(t *testing.T) {
	b := prepare(t, testScenario(1, 1))
	end := time.Now().Add(time.Hour)
	s := &script{acquire: once(&fakeHold{fence: 7, leaseEnd: func() time.Time { return end }})}
	h, sample := b.within(t, s, 0, nil)
	if sample.Error != "" {
		t.Error(sample.Error)
	}
	expectRound(t, h, "acquire held", "release released")
	a, r := h.Calls[0], h.Calls[1]
	if a.Fence != 7 || r.Fence != 7 {
		t.Errorf("tokens %d and %d, want 7", a.Fence, r.Fence)
	}
	clock := history.NewClock()
	if d := a.LeaseEnd - clock.At(end); d < -1e6 || d > 1e6 {
		t.Errorf("lease end is off by %d ns", d)
	}
	if a.Intended != a.Invoke {
		t.Error("a closed loop has no schedule, so what it intends is what it does")
	}
	if !h.Streams[0].Sealed || s.closes != 1 {
		t.Error("the client did not close its history and its lock")
	}
	if last := h.Calls[len(h.Calls)-1]; last.Kind != history.KindAcquire || last.Outcome != history.Failed {
		t.Errorf("the last call is %+v", last)
	}
	if st := b.board.Status(0); st.State != Idle || st.Acquired != 1 {
		t.Errorf("the board says %+v", st)
	}
}

// An acquire whose outcome is not certain is cleaned up until it is.
func TestUnknownAcquireIsCleanedUp(t *testing.T) {
	for name, refusal := range map[string]error{
		"unknown": impls.ErrUnknown, "unlisted": errors.New("connection reset by peer"),
	} {
		t.Run(name, func(t *testing.T) {
			b := prepare(t, testScenario(1, 1))
			s := &script{
				acquire: func(ctx context.Context, n int) (impls.Hold, error) {
					if n == 0 {
						return nil, refusal
					}
					return once(nil)(ctx, 1)
				},
				cleanup: func(n int) error {
					if n < 3 {
						return impls.ErrUnknown
					}
					return nil
				},
			}
			h, _ := b.within(t, s, 0, nil)
			expectRound(t, h, "acquire unknown", "cleanup unknown", "cleanup unknown", "cleanup unknown", "cleanup released")
		})
	}
}

// Certain failures owe no clean-up, and do not make the client spin.
func TestFailedAcquireBacksOff(t *testing.T) {
	sc := testScenario(1, 1)
	sc.Poll = scenario.Poll{Min: 10 * time.Millisecond, Max: 10 * time.Millisecond}
	b := prepare(t, sc)
	s := &script{enough: 5, acquire: func(context.Context, int) (impls.Hold, error) {
		return nil, fmt.Errorf("connection refused: %w", impls.ErrFailed)
	}}
	h, _ := b.within(t, s, 0, nil)
	if n := count(h, kindIs(history.KindAcquire, history.Failed)); n != len(h.Calls) || n < 5 {
		t.Errorf("%d failed acquires of %d calls", n, len(h.Calls))
	}
	for i := 1; i < len(h.Calls); i++ {
		if pause := h.Calls[i].Invoke - h.Calls[i-1].Return; pause < 10e6 {
			t.Errorf("acquire %d was sent %d ns after the last had failed, with a wait of 10 ms", i, pause)
		}
	}
}

// A recipe that answers neither a hold nor an error has said nothing certain.
func TestNoHoldIsUnknown(t *testing.T) {
	b := prepare(t, testScenario(1, 1))
	s := &script{acquire: once(nil), cleanup: func(int) error { return impls.ErrLost }}
	h, _ := b.within(t, s, 0, nil)
	expectRound(t, h, "acquire unknown", "cleanup lost")
}

// A release is sent once; doubt about it is a matter of clean-up.
func TestDoubtfulReleaseIsCleanedUp(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want []string
	}{
		"lost":     {impls.ErrLost, []string{"acquire held", "release lost"}},
		"unknown":  {impls.ErrUnknown, []string{"acquire held", "release unknown", "cleanup lost"}},
		"not sent": {impls.ErrFailed, []string{"acquire held", "release failed", "cleanup lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := prepare(t, testScenario(1, 1))
			s := &script{
				acquire: once(&fakeHold{release: func() error { return tt.err }}),
				cleanup: func(int) error { return impls.ErrLost },
			}
			h, _ := b.within(t, s, 0, nil)
			expectRound(t, h, tt.want...)
		})
	}
}

// A clean-up that never gets an answer ends with the lease.
func TestCleanUpHasAnEnd(t *testing.T) {
	sc := testScenario(1, 1)
	sc.TTL = scenario.Duration(time.Millisecond - leavePatience) // no patience left
	b := prepare(t, sc)
	s := &script{acquire: once(nil), cleanup: func(int) error { return impls.ErrUnknown }}
	h, sample := b.within(t, s, 0, nil)
	if n := count(h, kindIs(history.KindCleanup, history.Unknown)); n < 1 || sample.Error != "" {
		t.Errorf("%d clean-ups, error %q", n, sample.Error)
	}
}

// A lock that hangs on a session lives as long as that: a client that left it would wait
// behind himself.
func TestCleanUpOutlastsALease(t *testing.T) {
	sc := testScenario(1, 1)
	sc.TTL = scenario.Duration(time.Millisecond - leavePatience)
	b := prepare(t, sc)
	s := &script{bound: impls.BoundSession, acquire: once(nil), cleanup: func(n int) error {
		if n < 5 {
			return impls.ErrFailed
		}
		return impls.ErrLost
	}}
	h, _ := b.within(t, s, 0, nil)
	if n := count(h, kindIs(history.KindCleanup, history.Failed)); n < 4 || count(h, kindIs(history.KindCleanup, history.Lost)) != 1 {
		t.Errorf("%d clean-ups failed", n)
	}
}

// A client that learns of its loss writes nothing more, but still releases.
func TestLossEndsTheWork(t *testing.T) {
	sc := testScenario(1, 1)
	sc.Workload = scenario.Load{Kind: scenario.GuardedCounter, Keys: 1, Guard: "both", Hold: scenario.Dist{A: time.Hour}}
	b := prepare(t, sc)
	lost := make(chan struct{})
	s := &script{acquire: once(&fakeHold{fence: 1, lost: lost, release: func() error { return impls.ErrLost }})}
	h, _ := b.within(t, s, 0, func(*load) {
		await(t, "both reads", func() bool { return len(b.register.Finals()) == 2 })
		close(lost)
	})
	expectRound(t, h, "acquire held", "read accepted", "read accepted fenced", "lost lost", "release lost")
}

func TestLeaseTimer(t *testing.T) {
	for _, watch := range []bool{true, false} {
		t.Run(fmt.Sprintf("watch_lease=%v", watch), func(t *testing.T) {
			sc := testScenario(1, 1)
			sc.Workload = scenario.Load{Kind: scenario.GuardedCounter, Keys: 1, Guard: "both", WatchLease: watch, Hold: scenario.Dist{A: 30 * time.Millisecond}}
			if watch {
				sc.Workload.Hold.A = time.Hour
			}
			b := prepare(t, sc)
			// The lease ends once both registers have been read.
			leaseEnd := func() time.Time {
				if len(b.register.Finals()) < 2 {
					return time.Now().Add(time.Hour)
				}
				return time.Now().Add(-time.Millisecond)
			}
			h, _ := b.within(t, &script{acquire: once(&fakeHold{fence: 1, leaseEnd: leaseEnd})}, 0, nil)
			if watch {
				expectRound(t, h, "acquire held", "read accepted", "read accepted fenced", "lost lost timer", "release released")
			} else {
				expectRound(t, h, "acquire held", "read accepted", "read accepted fenced", "write accepted", "write accepted fenced", "release released")
			}
		})
	}
}

// A lease that is renewed in the background is not taken for lost at its old
// end: here that end passes while the client sleeps, each time, and has been
// moved when it looks again.
func TestLeaseTimerFollowsRenewals(t *testing.T) {
	sc := testScenario(1, 1)
	sc.Workload.WatchLease = true
	sc.Workload.Hold = scenario.Dist{A: 3 * time.Millisecond}
	b := prepare(t, sc)
	asked := 0 // in turn by the look for a loss, and to set the timer; first of all by the record
	leaseEnd := func() time.Time {
		asked++
		if asked > 1 && asked%2 == 1 {
			return time.Now().Add(-time.Millisecond)
		}
		return time.Now().Add(time.Hour)
	}
	h, _ := b.within(t, &script{acquire: once(&fakeHold{leaseEnd: leaseEnd})}, 0, nil)
	expectRound(t, h, "acquire held", "release released")
	if asked < 5 {
		t.Errorf("the lease's end was asked %d times: the timer never fired", asked)
	}
}

// A refused write is recorded, and the client goes on to its release.
func TestRejectedWrite(t *testing.T) {
	sc := testScenario(1, 1)
	sc.Workload = scenario.Load{Kind: scenario.GuardedCounter, Keys: 1, Guard: "both", Hold: scenario.Dist{A: time.Hour}}
	b := prepare(t, sc)
	lost := make(chan struct{})
	h, _ := b.within(t, &script{acquire: once(&fakeHold{fence: 1, lost: lost})}, 0, func(l *load) {
		await(t, "the hold", func() bool { return len(b.register.Finals()) == 2 })
		// A younger holder reads both, while ours still believes in its lock.
		b.register.do(registerCall{token: 2})
		b.register.do(registerCall{token: 2, fenced: true})
		l.stop() // ends the hold; the section is carried to its end
	})
	expectRound(t, h, "acquire held", "read accepted", "read accepted fenced", "write accepted", "write rejected fenced", "release released")
	if stale := count(h, func(c history.Call) bool { return c.Flags&history.FlagStale != 0 }); stale != 1 {
		t.Errorf("%d writes are marked stale, want the plain one", stale)
	}
	for _, f := range b.register.Finals() {
		if f.Fenced && (f.Rejected != 1 || f.Accepted != 0) || !f.Fenced && (f.Stale != 1 || f.Accepted != 1) {
			t.Errorf("final %+v", f)
		}
	}
}

// What cannot be recorded is not done.
func TestNoRecordNoCall(t *testing.T) {
	b := prepare(t, testScenario(1, 1))
	s := &script{acquire: func(context.Context, int) (impls.Hold, error) {
		t.Error("an acquire was sent that is not on record")
		return nil, impls.ErrFailed
	}}
	w := must[*host](t)(openWorker(context.Background(), b.specs()[0], only(s)))
	if err := w.clients[0].rec.hist.Close(); err != nil { // as a full disk would stop it
		t.Fatal(err)
	}
	w.load.begin(windowOf(w.load.clock.Now(), time.Hour))
	w.run()
	w.close()
	if !strings.Contains(w.sample.Error, "client 0") {
		t.Errorf("sample error %q", w.sample.Error)
	}
}

func TestPhases(t *testing.T) {
	// On a machine that stands still for all of one part the next time is longer.
	for part := 200 * time.Millisecond; !allPhases(t, part); part *= 2 {
		if part > time.Minute {
			t.Fatal("no load had calls in its warm-up and in its window")
		}
	}
}

// allPhases reports whether there were calls in the warm-up and after it, each
// part being so long.
func allPhases(t *testing.T, part time.Duration) bool {
	b := prepare(t, testScenario(1, 1))
	s := &script{acquire: func(context.Context, int) (impls.Hold, error) {
		time.Sleep(time.Millisecond)
		return &fakeHold{}, nil
	}}
	w := must[*host](t)(openWorker(context.Background(), b.specs()[0], only(s)))
	now := w.load.clock.Now()
	win := window{Start: now, WindowStart: now + int64(part), End: now + 2*int64(part)}
	w.load.begin(win)
	w.run()
	w.close()
	h := b.history(t)
	warm, drain := 0, 0
	for _, c := range h.Calls {
		if got, want := c.Flags&history.FlagWarmup != 0, c.Invoke < win.WindowStart; got != want {
			t.Fatalf("warm-up flag of %+v is wrong", c)
		}
		if got, want := c.Flags&history.FlagDrain != 0, c.Invoke >= win.End; got != want {
			t.Fatalf("drain flag of %+v is wrong", c)
		}
		if c.Flags&history.FlagWarmup != 0 {
			warm++
		}
		if c.Flags&history.FlagDrain != 0 {
			drain++
		}
	}
	if drain > 2 {
		t.Errorf("%d calls after the end", drain)
	}
	return 0 < warm && warm < len(h.Calls)
}

// A round allocates nothing of its own: what is allocated is the recipe's.
func TestRoundAllocatesNothing(t *testing.T) {
	b := prepare(t, testScenario(1, 1))
	hold := &fakeHold{}
	s := &script{acquire: func(context.Context, int) (impls.Hold, error) { return hold, nil }}
	w := must[*host](t)(openWorker(context.Background(), b.specs()[0], only(s)))
	w.load.begin(windowOf(w.load.clock.Now(), time.Hour))
	c := w.clients[0]
	c.acquireCtx, c.releaseCtx = context.Background(), context.Background()
	if n := testing.AllocsPerRun(5000, func() { c.round(0) }); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
	w.close()
}

func TestOpenErrorsAreReported(t *testing.T) {
	b := prepare(t, testScenario(2, 1))
	s := &script{opened: func() error { return errors.New("no such host") }}
	if _, err := openWorker(context.Background(), b.specs()[0], only(s)); err == nil || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("got %v", err)
	}
	if _, err := openWorker(context.Background(), b.specs()[0], only(nil)); err == nil || !strings.Contains(err.Error(), "reference/mutex") {
		t.Errorf("an unknown recipe: %v", err)
	}
}

// only is a catalogue of one recipe, or none.
func only(r impls.Recipe) func(string) (impls.Recipe, bool) {
	return func(string) (impls.Recipe, bool) { return r, r != nil }
}
