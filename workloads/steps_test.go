package workloads

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

func arm(t *testing.T, b *Board, step, nth int) {
	t.Helper()
	if err := b.Arm(step, nth); err != nil {
		t.Error(err)
	}
}

func armAt(t *testing.T, b *Board, info impls.Info, step impls.Step, nth int) {
	t.Helper()
	arm(t, b, slices.Index(Steps(info), step), nth)
}

func TestGateCatchesOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "board")
	b := must[*Board](t)(CreateBoard(path, 8))
	defer b.Close()
	other := must[*Board](t)(OpenBoard(path))
	defer other.Close()
	for round := range 50 {
		arm(t, b, 3, 1)
		var wg sync.WaitGroup
		var passed atomic.Int64
		for c := range uint32(8) {
			wg.Go(func() {
				other.head.gate.come(c, 2, 4, &history.Attempt{7}) // the gate is armed for another step
				other.head.gate.come(c, 3, 4, &history.Attempt{7})
				passed.Add(1)
			})
		}
		await(t, "seven to pass", func() bool { return passed.Load() == 7 })
		var st Status
		var ok bool
		await(t, "the eighth", func() bool { st, ok = b.Caught(); return ok })
		if st.Key != 4 || st.Attempt != (history.Attempt{7}) || b.Disarm() {
			t.Fatalf("round %d: caught %+v; or disarmed although a client waits there", round, st)
		}
		b.Open()
		wg.Wait()
		if _, ok := b.Caught(); ok {
			t.Fatal("the gate is open, and yet a client is caught")
		}
	}
	arm(t, b, 3, 1)
	if !b.Disarm() {
		t.Error("a gate at which no client waits could not be disarmed")
	}
	other.head.gate.come(1, 3, 4, &history.Attempt{7}) // and lets everybody pass
}

// The gate counts: clients before the nth pass.
func TestGateCounts(t *testing.T) {
	b := must[*Board](t)(CreateBoard(filepath.Join(t.TempDir(), "board"), 16))
	defer b.Close()
	for nth := range 12 {
		arm(t, b, 2, nth)
		var wg sync.WaitGroup
		var passed atomic.Int64
		for c := range uint32(12) {
			wg.Go(func() {
				b.head.gate.come(c, 1, 4, &history.Attempt{7}) // counts elsewhere
				if !b.head.gate.come(c, 2, 4, &history.Attempt{7}) {
					passed.Add(1)
				}
			})
		}
		await(t, "eleven to pass, and one to stand", func() bool { _, ok := b.Caught(); return ok && passed.Load() == 11 })
		b.Open()
		wg.Wait()
	}
	for range 5 {
		arm(t, b, 2, 3)
		for range 2 {
			if b.head.gate.come(1, 2, 4, &history.Attempt{7}) {
				t.Error("caught before its time")
			}
		}
		if !b.Disarm() {
			t.Error("no client has come to the armed step")
		}
	}
	if b.Arm(2, gateCount+1) == nil || b.Arm(2, -1) == nil {
		t.Error("it cannot count so far")
	}
}

// At the places of the load the client stands with the state that it has there,
// and what was to be recorded before is.
func TestPlacesOfTheLoad(t *testing.T) {
	sc := testScenario(2, 2)
	sc.Workload.Hold, sc.Workload.Think = scenario.Dist{A: time.Millisecond}, scenario.Dist{A: time.Millisecond}
	b := prepare(t, sc).start(t)
	b.begin(t, 0, time.Hour)
	for place, want := range map[impls.Step]State{PlaceAcquiring: Acquiring, PlaceHeld: Holding, PlaceReleasing: Releasing} {
		armAt(t, b.board, impls.Info{}, place, 3)
		var st Status
		await(t, "a client there", func() (ok bool) { st, ok = b.board.Caught(); return ok })
		if st.State != want || st.Attempt.IsZero() || st.Attempt != b.board.Status(st.Client).Attempt {
			t.Errorf("%s: caught %+v, want it %v", place, st, want)
		}
		last := b.recorded(t, st.Client)
		kind := map[impls.Step]history.Kind{PlaceAcquiring: history.KindAcquire, PlaceHeld: history.KindAcquire, PlaceReleasing: history.KindRelease}[place]
		if last.Kind != kind || last.Attempt != st.Attempt || (last.Outcome == history.Held) != (place == PlaceHeld) {
			t.Errorf("%s: its last record is %+v", place, last)
		}
		b.board.Open()
		await(t, "it to go on", func() bool { return b.board.Status(st.Client).Attempt != st.Attempt })
	}
	b.leaves(t)
}

// recorded is the last record of a client.
func (b *bench) recorded(t *testing.T, client uint32) history.Call {
	t.Helper()
	h := must[*history.History](t)(history.Read(filepath.Join(b.dir, fmt.Sprintf("client-%06d.lbh", client))))
	return h.Calls[len(h.Calls)-1]
}

// A renewal may come to its step while the client's own goroutine is anywhere;
// it stands at the gate with the hold that it is for, and the client goes on.
func TestRenewalAtTheGate(t *testing.T) {
	b := prepare(t, testScenario(1, 1))
	s := &script{steps: []impls.Step{impls.StepRenewing}}
	ctx, cancel := context.WithCancel(t.Context())
	renewing := make(chan struct{})
	s.acquire = func(_ context.Context, n int) (impls.Hold, error) {
		if n == 0 {
			s.cfg.Reach(ctx, impls.StepRenewing) // before the gate is armed
			go func() {
				defer close(renewing)
				for ctx.Err() == nil {
					s.cfg.Reach(ctx, impls.StepRenewing)
				}
			}()
		}
		return &fakeHold{}, nil
	}
	var st Status
	_, sample := b.within(t, s, time.Hour, func(l *load) {
		await(t, "the load", func() bool { return b.board.Acquired() > 10 })
		armAt(t, b.board, s.Info(), impls.StepRenewing, 2)
		await(t, "a renewal", func() (ok bool) { st, ok = b.board.Caught(); return ok })
		before := b.board.Acquired()
		await(t, "the client to go on", func() bool { return b.board.Acquired() > before+10 })
		b.board.Open()
		cancel()
		<-renewing
		l.stop()
	})
	if st.Client != 0 || sample.Steps["renewing"] == 0 || sample.Error != "" {
		t.Errorf("caught %+v; %+v", st, sample)
	}
}

// Disarming and coming at once: either the client passes, or it is caught and
// the one who disarms knows.
func TestGateRace(t *testing.T) {
	b := must[*Board](t)(CreateBoard(filepath.Join(t.TempDir(), "board"), 1))
	defer b.Close()
	caught := 0
	for range 2000 {
		arm(t, b, 0, 1)
		done := make(chan struct{})
		go func() {
			b.head.gate.come(0, 0, 4, &history.Attempt{7})
			close(done)
		}()
		if !b.Disarm() {
			caught++
			await(t, "a client at the gate", func() bool { _, ok := b.Caught(); return ok })
			b.Open()
		}
		<-done
	}
	t.Logf("caught %d of 2000", caught)
}

// A client in its own process stands at the step until it is let go, with its
// call on the board; the others work on.
func TestClientStandsAtAStep(t *testing.T) {
	sc := testScenario(3, 3)
	sc.Workload.Hold, sc.Workload.Think = scenario.Dist{A: time.Millisecond}, scenario.Dist{A: time.Millisecond}
	b := prepare(t, sc).start(t)
	b.begin(t, 0, time.Hour)
	armAt(t, b.board, impls.Info{}, impls.StepWaiting, 1)
	var st Status
	await(t, "a client that waits", func() (ok bool) { st, ok = b.board.Caught(); return ok })
	if st.State != Acquiring || st.Attempt.IsZero() || st.PID != b.pool.Process(st.Client).PID() {
		t.Errorf("caught %+v", st)
	}
	before := b.board.Acquired()
	await(t, "the others to work on", func() bool { return b.board.Acquired() > before+100 })
	if now := b.board.Status(st.Client); now.Attempt != st.Attempt || now.State != Acquiring {
		t.Errorf("it went on: %+v, then %+v", st, now)
	}
	b.board.Open()
	await(t, "it to go on", func() bool { return b.board.Status(st.Client).Attempt != st.Attempt })
	for waited := map[uint32]bool{st.Client: true}; len(waited) < sc.Clients; b.board.Open() {
		armAt(t, b.board, impls.Info{}, impls.StepWaiting, 1)
		await(t, "each client to wait once", func() (ok bool) { st, ok = b.board.Caught(); return ok })
		waited[st.Client] = true
	}
	b.pool.Stop()
	samples := b.wait(t)
	for _, s := range samples {
		if s.Error != "" || s.Steps[string(impls.StepWaiting)] == 0 {
			t.Errorf("%+v: want no error, and waiting counted", s)
		}
	}
}

// The gate shows the attempt of the call under way, also where the client holds
// the lock by another one already.
func TestGateShowsTheCallUnderWay(t *testing.T) {
	sc := testScenario(1, 1)
	sc.Workload = scenario.Load{Kind: scenario.Reentrant, Keys: 1, Depth: 2}
	b := prepare(t, sc)
	armAt(t, b.board, impls.Info{}, impls.StepWaiting, 1)
	a := &able{script: &script{}}
	a.acquire = func(ctx context.Context, n int) (impls.Hold, error) {
		if n == 1 {
			a.cfg.Reach(ctx, impls.StepWaiting)
		}
		if n > 1 {
			return once(nil)(ctx, n)
		}
		return &fakeHold{}, nil
	}
	var st Status
	h, _ := b.withinAs(t, a, a.script, time.Hour, func(l *load) {
		for ok := false; !ok; time.Sleep(time.Millisecond) {
			st, ok = b.board.Caught()
		}
		b.board.Open()
		l.stop()
	})
	if st.State != Holding || len(h.Calls) < 2 || st.Attempt != h.Calls[1].Attempt || st.Attempt == h.Calls[0].Attempt {
		t.Errorf("caught %+v; recorded %q", st, words(h, 4))
	}
}

// Steps count within the window only; those that the recipe does not list, too.
func TestStepsAreCountedWithinTheWindow(t *testing.T) {
	b := prepare(t, testScenario(1, 1))
	s := &script{}
	s.acquire = func(ctx context.Context, n int) (impls.Hold, error) {
		s.cfg.Reach(ctx, impls.StepWaiting)
		if n == 0 {
			s.cfg.Reach(ctx, impls.StepWaiting)
			s.cfg.Reach(ctx, "odd")
		}
		return once(&fakeHold{})(ctx, n)
	}
	_, sample := b.within(t, s, 0, nil)
	// The second acquire ends the load, before or after its step.
	if n := sample.Steps["waiting"]; n < 2 || n > 3 || sample.Steps["odd"] != 1 || len(sample.Steps) != 2 {
		t.Errorf("counted %v", sample.Steps)
	}
	early := steps{rec: &recorder{clock: history.NewClock(), phases: &phases{windowStart: 1 << 62}}, gate: &gate{}, call: &history.Op{}}
	early.rec.phases.end.Store(1<<63 - 1)
	early.Reach(t.Context(), impls.StepWaiting)
	counts := map[string]int64{}
	if early.add(counts); len(counts) != 0 {
		t.Errorf("a step of the warm-up is counted: %v", counts)
	}
}

// Of a recipe that serves its waiters in order the first wait of an acquire is
// the attempt's place in the queue.
func TestPlaceInTheQueueIsRecorded(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		b := prepare(t, testScenario(1, 1))
		s := &script{}
		if ordered {
			s.has = []impls.Property{impls.Exclusive, impls.Ordered}
		}
		s.acquire = func(ctx context.Context, n int) (impls.Hold, error) {
			if n == 0 {
				s.cfg.Reach(ctx, "before")
				s.cfg.Reach(ctx, impls.StepWaiting)
				s.cfg.Reach(ctx, impls.StepWoken)
				s.cfg.Reach(ctx, impls.StepWaiting)
			}
			return once(&fakeHold{release: func() error { s.cfg.Reach(ctx, impls.StepWaiting); return nil }})(ctx, n)
		}
		h, sample := b.within(t, s, 0, nil)
		if sample.Error != "" {
			t.Error(sample.Error)
		}
		if !ordered {
			expectRound(t, h, "acquire held", "release released")
			continue
		}
		expectRound(t, h, "acquire held", "enqueued accepted", "release released")
		if a, e := h.Calls[0], h.Calls[1]; e.Invoke < a.Invoke || e.Return > a.Return || e.Attempt != a.Attempt || e.Key != a.Key {
			t.Errorf("the place %+v is not within its acquire %+v", e, a)
		}
	}
}
