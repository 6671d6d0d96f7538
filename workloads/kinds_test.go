package workloads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// able is a script whose client can do everything besides, and notes what it
// was asked.
type able struct {
	*script
	asked []string
}

func (a *able) Open(ctx context.Context, c impls.Config) (impls.Client, error) {
	if _, err := a.script.Open(ctx, c); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *able) note(what string, keys ...string) {
	a.asked = append(a.asked, what+" "+strings.Join(keys, "+"))
}

func (a *able) Acquire(ctx context.Context, key string, at impls.Attempt) (impls.Hold, error) {
	a.note("acquire", key)
	return a.script.Acquire(ctx, key, at)
}

func (a *able) TryAcquire(ctx context.Context, key string, at impls.Attempt) (impls.Hold, error) {
	a.note("try", key)
	return a.script.Acquire(ctx, key, at)
}

func (a *able) Depth(string) int { return 0 }

func (a *able) AcquireRead(ctx context.Context, key string, at impls.Attempt) (impls.Hold, error) {
	a.note("read", key)
	return a.script.Acquire(ctx, key, at)
}

func (a *able) TryAcquireRead(ctx context.Context, key string, at impls.Attempt) (impls.Hold, error) {
	return a.AcquireRead(ctx, key, at)
}

func (a *able) AcquireAll(ctx context.Context, keys []string, at impls.Attempt) (impls.Hold, error) {
	a.note("all", keys...)
	return a.script.Acquire(ctx, keys[0], at)
}

func (a *able) TryAcquireAll(ctx context.Context, keys []string, at impls.Attempt) (impls.Hold, error) {
	return a.AcquireAll(ctx, keys, at)
}

func (a *able) CleanupAll(_ context.Context, keys []string, at impls.Attempt) error {
	a.note("tidy", keys...)
	return a.Cleanup(context.Background(), keys[0], at)
}

// words lists what was recorded from the first call on, n calls.
func words(h *history.History, n int) (list []string) {
	names := map[history.Attempt]string{}
	for _, c := range h.Calls[:min(n, len(h.Calls))] {
		if names[c.Attempt] == "" {
			names[c.Attempt] = string(rune('A' + len(names)))
		}
		w := fmt.Sprintf("%s %v %v", names[c.Attempt], c.Kind, c.Outcome)
		if c.Flags&history.FlagShared != 0 {
			w += " shared"
		}
		list = append(list, w)
	}
	return list
}

// Each release but the last leaves the client holding, and says so on the
// board; a lost lock is lost for every attempt.
func TestReentrantRound(t *testing.T) {
	sc := testScenario(1, 1)
	sc.Workload = scenario.Load{Kind: scenario.Reentrant, Keys: 1, Depth: 3, Hold: scenario.Dist{A: 2 * time.Millisecond}}
	for name, tt := range map[string]struct {
		lost bool
		want []string
	}{
		"kept": {false, []string{"A acquire held", "B acquire held", "C acquire held", "C release released", "B release released", "A release released"}},
		"lost": {true, []string{"A acquire held", "B acquire held", "C acquire held", "A lost lost", "B lost lost", "C lost lost", "C release released", "B release released", "A release released"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := prepare(t, sc)
			var states []State
			h := &fakeHold{release: func() error { states = append(states, b.board.Status(0).State); return nil }}
			if tt.lost {
				h.lost = make(chan struct{})
				close(h.lost)
			}
			a := &able{script: &script{enough: 3}}
			a.acquire = func(ctx context.Context, n int) (impls.Hold, error) {
				if n < 3 {
					return h, nil
				}
				return once(nil)(ctx, n)
			}
			hist, sample := b.withinAs(t, a, a.script, 0, nil)
			if sample.Error != "" {
				t.Error(sample.Error)
			}
			if got := words(hist, len(tt.want)); !slices.Equal(got, tt.want) {
				t.Errorf("recorded\n%q, want\n%q", got, tt.want)
			}
			want := []State{Holding, Holding, Releasing}
			if tt.lost {
				want = []State{Releasing, Releasing, Releasing}
			}
			if !slices.Equal(states, want) {
				t.Errorf("on the board at the releases: %v, want %v", states, want)
			}
		})
	}
}

// An inner acquire that is not granted leaves nothing behind, and the outer
// hold is used and released all the same.
func TestReentrantWithoutReentry(t *testing.T) {
	sc := testScenario(1, 1)
	sc.Workload = scenario.Load{Kind: scenario.Reentrant, Keys: 1, Depth: 2}
	b := prepare(t, sc)
	a := &able{script: &script{enough: 2, cleanup: func(int) error { return impls.ErrLost }}}
	a.acquire = func(ctx context.Context, n int) (impls.Hold, error) {
		switch n {
		case 0:
			return &fakeHold{}, nil
		case 1:
			if _, ok := ctx.Deadline(); !ok {
				t.Error("the second acquire has no end of its own")
			}
			return nil, impls.ErrUnknown
		}
		return once(nil)(ctx, n)
	}
	hist, _ := b.withinAs(t, a, a.script, 0, nil)
	want := []string{"A acquire held", "B acquire unknown", "B cleanup lost", "A release released"}
	if got := words(hist, 4); !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

// A batch is one attempt of several keys, all of which are on record before it
// is sent; it is cleaned up as a whole.
func TestBatchRound(t *testing.T) {
	sc := testScenario(1, 1)
	sc.Workload = scenario.Load{Kind: scenario.Batch, Keys: 5, Batch: 3}
	b := prepare(t, sc)
	a := &able{script: &script{cleanup: func(int) error { return nil }}}
	a.acquire = func(ctx context.Context, n int) (impls.Hold, error) {
		if n == 0 {
			return nil, impls.ErrUnknown
		}
		return once(nil)(ctx, n)
	}
	hist, _ := b.withinAs(t, a, a.script, 0, nil)
	want := []string{"A also accepted", "A also accepted", "A acquire unknown", "A cleanup released"}
	if got := words(hist, 4); !slices.Equal(got, want) {
		t.Fatalf("recorded %q, want %q", got, want)
	}
	var names []string
	for _, i := range []int{2, 0, 1} {
		names = append(names, b.specs()[0].Keys[hist.Calls[i].Key])
	}
	if names[0] == names[1] || names[1] == names[2] || names[0] == names[2] {
		t.Errorf("the keys %v are not different", names)
	}
	keys := strings.Join(names, "+")
	if got := a.asked[:2]; !slices.Equal(got, []string{"all " + keys, "tidy " + keys}) {
		t.Errorf("asked %q, recorded were %s", got, keys)
	}
}

// Readers are drawn by their share; every call of theirs says that it shares.
func TestReadWriteRounds(t *testing.T) {
	sc := testScenario(1, 1)
	sc.Workload = scenario.Load{Kind: scenario.ReadWrite, Keys: 1, Readers: 0.75}
	b := prepare(t, sc)
	a := &able{script: &script{enough: 200, acquire: func(context.Context, int) (impls.Hold, error) { return &fakeHold{}, nil }}}
	hist, sample := b.withinAs(t, a, a.script, 0, nil)
	if sample.Error != "" {
		t.Error(sample.Error)
	}
	reads, all := 0, len(a.asked)
	for _, w := range a.asked {
		if w == "read ka" {
			reads++
		}
	}
	if share := float64(reads) / float64(all); share < 0.6 || share > 0.9 {
		t.Errorf("%d of %d acquires were for reading, want about three quarters", reads, all)
	}
	shared := map[history.Attempt]history.Flags{}
	for _, c := range hist.Calls {
		if c.Kind == history.KindAcquire {
			shared[c.Attempt] = c.Flags & history.FlagShared
		} else if c.Flags&history.FlagShared != shared[c.Attempt] {
			t.Fatalf("%v of an attempt says otherwise than its acquire: %+v", c.Kind, c)
		}
	}
	if n := count(hist, func(c history.Call) bool {
		return c.Kind == history.KindAcquire && c.Flags&history.FlagShared != 0
	}); n != reads {
		t.Errorf("%d acquires on record share, asked were %d", n, reads)
	}
}

// A client that finds the lock held comes again after its think, not after the
// lock's own wait.
func TestTryStorm(t *testing.T) {
	sc := testScenario(1, 1)
	sc.Poll = scenario.Poll{Min: time.Hour, Max: time.Hour}
	sc.Workload = scenario.Load{Kind: scenario.TryStorm, Keys: 1}
	b := prepare(t, sc)
	a := &able{script: &script{enough: 20, acquire: func(_ context.Context, n int) (impls.Hold, error) {
		if n%4 == 0 {
			return &fakeHold{}, nil
		}
		return nil, impls.ErrBusy
	}}}
	hist, _ := b.withinAs(t, a, a.script, 0, nil)
	held, busy := count(hist, kindIs(history.KindTry, history.Held)), count(hist, kindIs(history.KindTry, history.Busy))
	if held == 0 || busy < 2*held || count(hist, kindIs(history.KindAcquire, history.Held)) > 0 || a.asked[0] != "try ka" {
		t.Errorf("%d tries held, %d busy", held, busy)
	}
}

// Waits of a churn end within the limit, about half of them by a deadline that
// the lock knows, half by being called off.
func TestChurn(t *testing.T) {
	sc := testScenario(1, 1)
	sc.Workload = scenario.Load{Kind: scenario.Churn, Keys: 1, AcquireLimit: scenario.Duration(2 * time.Millisecond)}
	b := prepare(t, sc)
	cancelled, late := 0, 0
	s := &script{enough: 100, acquire: func(ctx context.Context, n int) (impls.Hold, error) {
		<-ctx.Done()
		if errors.Is(ctx.Err(), context.Canceled) {
			cancelled++
		} else {
			late++
		}
		return nil, impls.ErrFailed
	}}
	b.within(t, s, 0, nil)
	if all := cancelled + late; cancelled < all/4 || late < all/4 {
		t.Errorf("%d waits cancelled, %d out of time", cancelled, late)
	}
}

// A load that the recipe cannot serve is refused before it begins; what only
// shows in the call ends the client with the reason.
func TestUnsupportedLoads(t *testing.T) {
	for _, kind := range []string{scenario.ReadWrite, scenario.Reentrant, scenario.Batch} {
		sc := testScenario(1, 1)
		sc.Workload = scenario.Load{Kind: kind, Keys: 1, Depth: 2, Batch: 1}
		b := prepare(t, sc)
		_, err := openWorker(t.Context(), b.specs()[0], find)
		if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "reference/mutex cannot ") {
			t.Errorf("%s: %v", kind, err)
		}
	}
	sc := testScenario(1, 1)
	sc.Workload = scenario.Load{Kind: scenario.TryStorm, Keys: 1}
	b := prepare(t, sc)
	s := &script{acquire: func(context.Context, int) (impls.Hold, error) {
		return nil, fmt.Errorf("no try: %w", errors.ErrUnsupported)
	}}
	h, sample := b.within(t, s, time.Hour, nil)
	if !strings.Contains(sample.Error, "cannot serve the load try-storm: no try: unsupported operation") || len(h.Calls) != 1 || h.Calls[0].Outcome != history.Failed {
		t.Errorf("sample %q, calls %+v", sample.Error, h.Calls)
	}
}

// The clients of a worker share what the scenario says, and it is closed
// after them.
func TestSharedConnections(t *testing.T) {
	for _, n := range []int{0, 3} {
		sc := testScenario(2, 1)
		sc.Workload.Connections = n
		b := prepare(t, sc)
		var seen []*impls.Shared
		p := &pooled{}
		s := &script{acquire: once(nil), cleanup: func(int) error { return impls.ErrLost }}
		p.s = s
		r := &opensWith{script: s, see: func(c impls.Config) {
			seen = append(seen, c.Shared)
			if c.Shared != nil {
				if _, err := c.Shared.Get("pool", func() (io.Closer, error) { return p, nil }); err != nil {
					t.Error(err)
				}
			}
		}}
		w := must[*host](t)(openWorker(t.Context(), b.specs()[0], only(r)))
		w.close()
		if len(seen) != 2 || seen[0] != seen[1] || (seen[0] != nil) != (n > 0) || n > 0 && (seen[0].Connections != n || p.closed != 1 || p.after != 2) {
			t.Errorf("connections %d: shared %v, closed %d times after %d clients", n, seen, p.closed, p.after)
		}
	}
}

// pooled notes how many clients were closed before it.
type pooled struct {
	s             *script
	closed, after int
}

func (p *pooled) Close() error { p.closed++; p.after = p.s.closes; return nil }

// opensWith shows a test what its clients are opened with.
type opensWith struct {
	*script
	see func(impls.Config)
}

func (o *opensWith) Open(ctx context.Context, c impls.Config) (impls.Client, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.see(c)
	return o.script.Open(ctx, c)
}
