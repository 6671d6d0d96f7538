package workloads

import (
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// held begins a takeover, and returns once every holder has its key, before the
// window begins at from: on a machine that is too slow for that the next warm-up
// is longer.
func held(t *testing.T, sc scenario.Scenario, window time.Duration) (b *bench, from int64) {
	t.Helper()
	for warmup := 300 * time.Millisecond; warmup < time.Minute; warmup *= 2 {
		b = prepare(t, sc).start(t)
		from, _ = b.begin(t, warmup, window)
		for b.clock.Now() < from {
			holders := 0
			for c := range uint32(sc.Clients / 2) {
				if st := b.board.Status(c); st.State == Holding && st.Key == c {
					holders++
				}
			}
			if now := b.clock.Now(); holders == sc.Clients/2 && now < from {
				return b, from
			}
			time.Sleep(time.Millisecond)
		}
		b.pool.Stop()
		b.wait(t)
	}
	t.Fatal("no warm-up was long enough for all holders to get their keys")
	return nil, 0
}

// The holders come first and stay; when their process is killed every one of
// their keys passes to the client that waits for it.
func TestTakeover(t *testing.T) {
	sc := testScenario(8, 2)
	sc.TTL = scenario.Duration(time.Second)
	sc.Workload = scenario.Load{Kind: scenario.Takeover, Keys: 4, Hold: scenario.Dist{A: time.Millisecond}}
	b, from := held(t, sc, time.Hour)
	await(t, "four that wait", func() bool {
		for c := uint32(4); c < 8; c++ {
			if st := b.board.Status(c); st.State != Acquiring || st.Key != c-4 {
				return false
			}
		}
		return true
	})
	if err := b.pool.Process(0).Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "four successors", func() bool { return b.board.Acquired() == 8 })
	await(t, "their end", func() bool { // each has its key once
		for c := uint32(4); c < 8; c++ {
			if b.board.Status(c).State != Idle {
				return false
			}
		}
		return true
	})
	b.pool.Stop()
	samples := b.wait(t)
	if samples[0].Error == "" || samples[1].Error != "" {
		t.Errorf("samples %+v", samples)
	}
	h := b.history(t)
	for _, c := range h.Calls {
		if c.Client >= 4 && c.Kind == history.KindAcquire && c.Invoke < from {
			t.Errorf("one that waits came before the window: %+v", c)
		}
		if c.Client < 4 && c.Kind == history.KindAcquire && (c.Outcome != history.Held || c.Flags&history.FlagWarmup == 0) {
			t.Errorf("a holder did not get its key in the warm-up: %+v", c)
		}
	}
}

// A holder that is not killed lets go when the load ends.
func TestTakeoverWithoutAKill(t *testing.T) {
	sc := testScenario(4, 2)
	sc.Workload = scenario.Load{Kind: scenario.Takeover, Keys: 2}
	b, _ := held(t, sc, 200*time.Millisecond)
	for _, s := range b.wait(t) {
		if s.Error != "" {
			t.Error(s.Error)
		}
	}
	h := b.history(t)
	if n := count(h, kindIs(history.KindRelease, history.Released)); n < 2 || overlaps(h) > 0 {
		t.Errorf("%d releases, %d overlaps", n, overlaps(h))
	}
	for _, c := range h.Calls {
		if c.Client < 2 && c.Kind == history.KindRelease && c.Flags&history.FlagDrain == 0 {
			t.Errorf("a holder let go before the end: %+v", c)
		}
	}
}
