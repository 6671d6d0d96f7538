package measure

import (
	"testing"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// TestLossSignals: a signal before the next client's grant is in time, after it
// is late, and no signal is missing. A lock without signals has no such figure.
func TestLossSignals(t *testing.T) {
	signalling := leased()
	signalling.Bound, signalling.Properties = impls.BoundSession, []impls.Property{impls.SignalsLoss}
	lost := func(s *story, client uint32, attempt string, at float64, flags history.Flags) {
		s.call(client, attempt, history.KindLost, history.Lost, at, at).Flags |= flags
	}
	play := func(s *story) {
		// In time: signalled at 500, the next grant at 600.
		s.call(0, "a", history.KindAcquire, history.Held, 0, 10)
		lost(s, 0, "a", 500, 0)
		s.hold(1, "b", 20, 600, 700)
		// Late: the next grant at 900, signalled at 1200.
		s.call(0, "c", history.KindAcquire, history.Held, 750, 800)
		s.hold(1, "d", 810, 900, 950)
		lost(s, 0, "c", 1200, 0)
		// Never, and by its own timer only, which is not the lock's word.
		s.call(2, "e", history.KindAcquire, history.Held, 1250, 1300)
		s.hold(1, "f", 1310, 1400, 1450)
		s.call(2, "e", history.KindRelease, history.Lost, 1500, 1510)
		s.call(2, "g", history.KindAcquire, history.Held, 1550, 1600)
		s.hold(1, "h", 1610, 1700, 1750)
		lost(s, 2, "g", 1800, history.FlagLeaseTimer)
	}
	s := newStory(signalling, 3)
	play(s)
	want := scenario.LossSignals{InTime: 1, Late: 1, Missing: 2, WorstLateNS: 300 * ms}
	if got := s.result().Safety.LossSignals; got == nil || *got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	silent := newStory(leased(), 3)
	play(silent)
	if r := silent.result(); r.Safety.LossSignals != nil || r.Unmeasured["loss_signals"] == "" {
		t.Errorf("%+v, unmeasured: %q", r.Safety.LossSignals, r.Unmeasured["loss_signals"])
	}
	calm := newStory(signalling, 2)
	calm.hold(0, "a", 0, 10, 20)
	calm.hold(1, "b", 5, 30, 40)
	if r := calm.result(); r.Safety.LossSignals != nil || r.Unmeasured["loss_signals"] == "" {
		t.Errorf("no client lost a lock: %+v", r.Safety.LossSignals)
	}
}
