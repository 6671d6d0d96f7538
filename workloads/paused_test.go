package workloads

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// A holder that is stopped past its lease: what the whole way must show is the
// overlap, the stale write on the plain register, and that the fenced one,
// under the very same fault, refused it and lost nothing.
func TestPausedHolder(t *testing.T) {
	sc := testScenario(2, 2)
	sc.TTL = scenario.Duration(200 * time.Millisecond)
	sc.Workload = scenario.Load{Kind: scenario.GuardedCounter, Keys: 1, Guard: "both", Hold: scenario.Dist{A: 5 * time.Millisecond}, Think: scenario.Dist{A: 5 * time.Millisecond}}
	b := prepare(t, sc).start(t)
	b.begin(t, 0, time.Hour)
	var held Status
	await(t, "a holder stopped while holding", func() bool {
		if b.board.Status(0).State != Holding {
			return false
		}
		p := b.pool.Process(0)
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		await(t, "the stop", func() bool { s, err := p.State(); return err == nil && s == 'T' })
		if held = b.board.Status(0); held.State == Holding {
			return true
		}
		if err := p.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		return false
	})
	before, stopped := b.board.Status(1).Acquired, time.Now()
	await(t, "the lease to end and others to work", func() bool {
		return b.board.Status(1).Acquired > before+3 && time.Since(stopped) > 2*stallLeast
	})
	if err := b.pool.Process(0).Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await(t, "the holder to go on", func() bool { return b.board.Status(0).Attempt != held.Attempt })
	b.pool.Stop()
	for _, s := range b.wait(t) {
		if s.Error != "" {
			t.Error(s.Error)
		}
		if stalled := slices.ContainsFunc(s.Stalls, func(x scenario.Stall) bool { return x.To-x.From > int64(stallLeast) }); slices.Contains(s.Clients, 0) && !stalled {
			t.Errorf("stalls %v of the worker that was stopped", s.Stalls)
		}
	}

	h := b.history(t)
	if overlaps(h) == 0 {
		t.Error("no overlap")
	}
	if n := count(h, func(c history.Call) bool {
		return c.Attempt == held.Attempt && c.Kind == history.KindRelease && c.Outcome == history.Lost
	}); n != 1 {
		t.Errorf("%d releases of the paused hold were answered lost, want 1", n)
	}
	for _, f := range b.register.Finals() {
		t.Logf("fenced %v: %d writes accepted, final %d, %d stale, %d rejected", f.Fenced, f.Accepted, f.Value, f.Stale, f.Rejected)
		switch {
		case !f.Fenced && f.Stale == 0:
			t.Error("the plain register saw no stale write")
		case f.Fenced && (f.Rejected == 0 || f.Stale != 0 || f.Value != f.Accepted):
			t.Error("the fenced register did not keep the stale holder out")
		}
	}
}
