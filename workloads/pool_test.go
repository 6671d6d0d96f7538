package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

func TestPoolRunsALoad(t *testing.T) {
	for _, kind := range []string{scenario.Uncontended, scenario.HotKey, scenario.Keys, scenario.GuardedCounter} {
		t.Run(kind, func(t *testing.T) {
			sc := testScenario(4, 2)
			sc.Workload = scenario.Load{Kind: kind, Keys: 4, Distribution: "zipf", ZipfS: 1.1, Guard: "both",
				Hold: scenario.Dist{Kind: scenario.DistExponential, A: time.Millisecond}, Think: scenario.Dist{Kind: scenario.DistUniform, A: 0, B: 2 * time.Millisecond}}
			b := prepare(t, sc).start(t)
			from, _ := b.begin(t, 50*time.Millisecond, time.Hour)
			await(t, "the window", func() bool { return b.clock.Now() >= from })
			before := b.board.Acquired()
			await(t, "grants within it", func() bool { return b.board.Acquired() >= before+50 })
			b.pool.Stop()
			samples := b.wait(t)
			h := b.history(t)
			for w, s := range samples {
				if s.Error != "" || s.PID == os.Getpid() || len(s.Clients) != 2 || s.MaxRSSB < 1<<20 || s.CPUNS <= 0 {
					t.Errorf("worker %d: %+v", w, s)
				}
			}
			for _, s := range h.Streams {
				if !s.Sealed {
					t.Errorf("client %d did not seal its history", s.Client)
				}
			}
			held := count(h, kindIs(history.KindAcquire, history.Held))
			if held == 0 || uint64(held) != b.board.Acquired() {
				t.Errorf("%d grants on record, the board counted %d", held, b.board.Acquired())
			}
			if n := overlaps(h); n > 0 {
				t.Errorf("%d overlaps", n)
			}
			if n := count(h, func(c history.Call) bool { return c.Flags == 0 && c.Invoke >= from }); n == 0 {
				t.Error("no call within the window")
			}
			if n := count(h, func(c history.Call) bool { return c.Outcome == history.Open }); n > 0 {
				t.Errorf("%d calls were left open", n)
			}
			for c := range uint32(4) {
				if st := b.board.Status(c); st.State != Idle || st.PID != samples[c/2].PID || b.pool.Process(c).PID() != st.PID {
					t.Errorf("the board says %+v", st)
				}
			}
			if got := b.pool.Hosted(3); !slices.Equal(got, []uint32{2, 3}) {
				t.Errorf("the process of client 3 hosts %v", got)
			}
			if b.pool.Process(4) != nil || b.pool.Hosted(4) != nil {
				t.Error("a process hosts a client that is not there")
			}
			if kind == scenario.GuardedCounter {
				checkCounter(t, b, h)
			}
		})
	}
}

// checkCounter: under a lock that keeps its word every accepted write added
// one, on both registers.
func checkCounter(t *testing.T, b *bench, h *history.History) {
	t.Helper()
	finals := b.register.Finals()
	if len(finals) != 2 {
		t.Fatalf("%d registers", len(finals))
	}
	for _, f := range finals {
		acknowledged := count(h, func(c history.Call) bool {
			return c.Kind == history.KindWrite && c.Outcome == history.Accepted && (c.Flags&history.FlagFenced != 0) == f.Fenced
		})
		if f.Value != f.Accepted || int(f.Accepted) != acknowledged || f.Stale != 0 || f.Rejected != 0 || f.Value == 0 {
			t.Errorf("%d writes acknowledged; %+v", acknowledged, f)
		}
	}
}

// SIGKILL in the middle of an acquire: its invoke is on disk, and every call
// that had returned is there.
func TestKilledInTheMiddleOfAnAcquire(t *testing.T) {
	for range 3 {
		b := prepare(t, testScenario(1, 1)).start(t)
		b.begin(t, 0, time.Hour)
		await(t, "some rounds", func() bool { return b.board.Acquired() >= 100 })

		// Take the lock away, so that the worker's acquire stays in the middle.
		r, _ := find("reference/mutex")
		sc := b.sc
		other := must[impls.Client](t)(r.Open(context.Background(), impls.Config{
			Addresses: b.specs()[0].Addresses, Dial: dial, Clock: impls.SystemClock(), TTL: time.Hour, Timeout: sc.Timeout.D(),
			Wait: impls.NewUniform(0, 0, 1),
		}))
		must[impls.Hold](t)(other.Acquire(context.Background(), "ka", history.Attempt{1}))
		acquired := b.board.Acquired()
		var st Status
		await(t, "an acquire that waits", func() bool { st = b.board.Status(0); return st.State == Acquiring })
		if err := b.pool.Process(0).Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		samples := b.wait(t)
		if len(samples) != 1 || !strings.Contains(samples[0].Error, "killed") {
			t.Errorf("samples %+v", samples)
		}

		h := b.history(t)
		if h.Streams[0].Sealed {
			t.Error("a killed client sealed its history")
		}
		last := h.Calls[len(h.Calls)-1]
		if last.Kind != history.KindAcquire || last.Outcome != history.Open || last.Attempt != st.Attempt || last.Invoke != st.Since {
			t.Errorf("the last call on record is %+v; the board showed %+v", last, st)
		}
		held := count(h, kindIs(history.KindAcquire, history.Held))
		released := count(h, kindIs(history.KindRelease, history.Released))
		if uint64(held) != acquired || held != released {
			t.Errorf("%d grants and %d releases on record, %d had been counted", held, released, acquired)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}
}

// SIGKILL at any moment: what the board had counted is on record.
func TestKilledAtAnyMoment(t *testing.T) {
	for i := range 5 {
		b := prepare(t, testScenario(3, 3)).start(t)
		b.begin(t, 0, time.Hour)
		await(t, "some rounds", func() bool { return b.board.Acquired() >= uint64(50+37*i) })
		for c := range uint32(3) {
			if err := b.pool.Process(c).Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range b.wait(t) {
			if s.Error == "" {
				t.Error("a killed worker has no error")
			}
		}
		h := b.history(t)
		for c := range uint32(3) {
			st := b.board.Status(c)
			held := count(h, func(x history.Call) bool { return x.Client == c && x.Outcome == history.Held })
			// The count follows the record: it may be one behind.
			if n := uint64(held) - st.Acquired; n > 1 {
				t.Errorf("client %d: %d grants on record, %d counted", c, held, st.Acquired)
			}
			if st.State == Holding && count(h, func(x history.Call) bool { return x.Attempt == st.Attempt && x.Kind == history.KindRelease }) > 0 {
				t.Errorf("client %d: the board says holding, but its release is on record", c)
			}
		}
	}
}

// While a process is stopped, a slot that says holding is right: no
// release of that attempt was begun.
func TestStoppedHolderHasNotReleased(t *testing.T) {
	sc := testScenario(2, 2)
	sc.Workload.Hold = scenario.Dist{A: time.Millisecond}
	b := prepare(t, sc).start(t)
	b.begin(t, 0, time.Hour)
	caught := 0
	await(t, "five holders stopped", func() bool {
		c := uint32(caught % 2)
		if b.board.Status(c).State != Holding {
			return false
		}
		p := b.pool.Process(c)
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		await(t, "the stop", func() bool { s, err := p.State(); return err == nil && s == 'T' })
		if st := b.board.Status(c); st.State == Holding {
			caught++
			h := b.history(t)
			for _, x := range h.Calls {
				if x.Attempt == st.Attempt && x.Kind == history.KindRelease {
					t.Errorf("holding, but released: %+v", x)
				}
			}
			if count(h, func(x history.Call) bool { return x.Attempt == st.Attempt && x.Outcome == history.Held }) != 1 {
				t.Error("holding, but the grant is not on record")
			}
		}
		if err := p.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		return caught >= 5
	})
	b.pool.Stop()
	b.wait(t)
}

func TestPoolWithAWorkerThatDies(t *testing.T) {
	b := prepare(t, testScenario(3, 3)).start(t)
	b.begin(t, 0, time.Hour)
	await(t, "some rounds", func() bool { return b.board.Acquired() > 10 })
	if err := b.pool.Process(1).Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-b.pool.Process(1).Done()
	b.pool.Stop() // the dead one cannot read it, which is no error
	samples := b.wait(t)
	if len(samples) != 3 || samples[0].Error != "" || samples[1].Error == "" || samples[2].Error != "" {
		t.Errorf("samples %+v", samples)
	}
	for c, s := range b.history(t).Streams {
		if s.Sealed != (c != 1) {
			t.Errorf("client %d: sealed is %v", c, s.Sealed)
		}
	}
}

func TestPoolStop(t *testing.T) {
	sc := testScenario(3, 2)
	sc.Workload.Hold, sc.Workload.Think = scenario.Dist{A: time.Hour}, scenario.Dist{A: time.Millisecond}
	b := prepare(t, sc).start(t)
	b.begin(t, 0, 10*time.Hour)
	await(t, "a hold", func() bool { return b.board.Acquired() > 0 })
	b.pool.Stop()
	b.pool.Stop() // once more does no harm
	for _, s := range b.wait(t) {
		if s.Error != "" {
			t.Error(s.Error)
		}
	}
	h := b.history(t)
	for _, s := range h.Streams {
		if !s.Sealed {
			t.Errorf("client %d did not seal its history", s.Client)
		}
	}
	if held, released := count(h, kindIs(history.KindAcquire, history.Held)), count(h, kindIs(history.KindRelease, history.Released)); held != released || held == 0 {
		t.Errorf("%d held, %d released", held, released)
	}
}

func TestPoolStopBeforeGo(t *testing.T) {
	b := prepare(t, testScenario(2, 2)).start(t)
	b.pool.Stop()
	for _, s := range b.wait(t) {
		if s.Error != "" {
			t.Error(s.Error)
		}
	}
}

// A worker that hangs past all patience is killed, and is a sample.
func TestPoolKillsWhoStays(t *testing.T) {
	b := prepare(t, testScenario(2, 2)).start(t)
	b.begin(t, 0, 10*time.Hour)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	samples := must[[]scenario.WorkerSample](t)(b.pool.Wait(ctx))
	for _, s := range samples {
		if s.Error == "" {
			t.Error("a killed worker has no error")
		}
	}
}

func TestPoolThatCannotStart(t *testing.T) {
	for name, spoil := range map[string]func(*Spec, *PoolOptions){
		"unknown recipe": func(s *Spec, _ *PoolOptions) { s.Scenario.Recipe = "reference/none" },
		"no board":       func(s *Spec, _ *PoolOptions) { s.Board += "-none" },
		"no folder":      func(s *Spec, _ *PoolOptions) { s.Dir += "-none" },
		"no program":     func(_ *Spec, o *PoolOptions) { o.Command = []string{"/nonexistent/program"} },
		"no worker":      func(_ *Spec, o *PoolOptions) { o.Command = []string{"/bin/true"} },
		"prints":         func(_ *Spec, o *PoolOptions) { o.Command = []string{"/bin/echo", "hello"} },
		"small cap": func(_ *Spec, o *PoolOptions) {
			for i := range o.Specs {
				w := &o.Specs[i].Scenario.Workload
				w.Arrival, w.Rate, w.MaxInFlight = scenario.ArrivalConstant, 10, 1
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := prepare(t, testScenario(2, 2))
			o := PoolOptions{Run: b.run, Command: []string{must[string](t)(os.Executable())}, Specs: b.specs()}
			spoil(&o.Specs[1], &o)
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			if _, err := StartPool(ctx, o); err == nil || ctx.Err() != nil {
				t.Errorf("got error %v", err)
			} else {
				t.Log(err)
			}
		})
	}
}

// The end of stdin is the end of the worker, before and after the start.
func TestOrphan(t *testing.T) {
	for _, begun := range []bool{false, true} {
		b := prepare(t, testScenario(1, 1))
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- Main(context.Background(), inR, outW, io.Discard, find) }()
		in, out := json.NewEncoder(inW), json.NewDecoder(outR)
		if err := in.Encode(order{Spec: &b.specs()[0]}); err != nil {
			t.Fatal(err)
		}
		var r report
		if err := out.Decode(&r); err != nil || !r.Ready {
			t.Fatalf("%+v, %v", r, err)
		}
		if begun {
			now := b.clock.Now()
			if err := in.Encode(order{Go: &window{now, now, now + int64(time.Hour)}}); err != nil {
				t.Fatal(err)
			}
			await(t, "the load", func() bool { return b.board.Acquired() > 0 })
		}
		go io.Copy(io.Discard, outR)
		inW.Close()
		if err := <-ended; !errors.Is(err, ErrOrphan) {
			t.Errorf("got %v", err)
		}
	}
}

func TestGoRefusesAnEmptyWindow(t *testing.T) {
	p := &Pool{}
	if p.Go(10, 5, 20) == nil || p.Go(1, 5, 5) == nil || p.Go(1, 2, 3) != nil {
		t.Error("a window is refused if, and only if, it is none")
	}
}

// The known-bad lock: the way is good enough to see it.
func TestBrokenLockIsSeen(t *testing.T) {
	sc := testScenario(8, 2)
	sc.Recipe = "reference/broken"
	sc.Workload.Hold, sc.Workload.Think = scenario.Dist{A: time.Millisecond}, scenario.Dist{A: time.Millisecond}
	b := prepare(t, sc).start(t)
	b.begin(t, 0, time.Hour)
	// About one grant in two hundred is a second one: chance must not spare it.
	await(t, "2500 grants", func() bool { return b.board.Acquired() > 2500 })
	b.pool.Stop()
	b.wait(t)
	if n := overlaps(b.history(t)); n == 0 {
		t.Error("no overlap seen under a lock that grants twice")
	} else {
		t.Logf("%d overlaps", n)
	}
}
