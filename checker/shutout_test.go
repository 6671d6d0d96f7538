package checker

import (
	"testing"

	"github.com/lockbench/lockbench/history"
)

// shutOut has client 0 granted the key again and again, and client 1 with acquires of
// the given outcome.
func shutOut(outcome history.Outcome, every, lasts, until int64) []step {
	var steps []step
	n := 0
	for t := int64(0); t < 2000; t += 10 {
		steps = append(steps, step{0, n, acq, held, t, t + 1, 0, 0}, step{0, n, rel, freed, t + 5, t + 6, 0, 0})
		n++
	}
	for t := int64(100); t < until; t += every {
		steps = append(steps, step{1, 1000 + n, acq, outcome, t, t + lasts, 0, 0})
		n++
	}
	steps = append(steps, step{1, 5000, acq, held, until, until + 8, 0, 0}, step{1, 5000, rel, freed, until + 8, until + 9, 0, 0})
	return steps
}

func TestShutOut(t *testing.T) {
	judged := Options{Takeover: 200, JudgeClients: true}
	with := func(change func(o *Options)) Options {
		o := judged
		change(&o)
		return o
	}
	for _, tc := range []struct {
		name  string
		steps []step
		opt   Options
		stuck bool
	}{
		{"every acquire fails for good", shutOut(history.Failed, 20, 2, 1900), judged, true},
		{"every answer is lost", shutOut(unk, 20, 2, 1900), judged, true},
		{"for less than the bound", shutOut(history.Failed, 20, 2, 280), judged, false},
		{"it is refused", shutOut(busy, 20, 2, 1900), judged, false},
		{"it gives up itself", shutOut(unk, 20, 10, 1900), with(func(o *Options) { o.GivesUpAfter = 10 }), false},
		{"it fails before it gives up", shutOut(unk, 20, 9, 1900), with(func(o *Options) { o.GivesUpAfter = 10 }), true},
		{"it was cut off meanwhile", shutOut(history.Failed, 20, 2, 1900), with(func(o *Options) { o.Paused = []Interval{{1, 150, 1850}} }), false},
		{"it fails long after it was cut off", shutOut(history.Failed, 20, 2, 1900), with(func(o *Options) { o.Paused = []Interval{{1, 100, 400}} }), true},
		{"it comes seldom", shutOut(history.Failed, 300, 2, 1900), judged, false},
		{"others get it no more", append(shutOut(history.Failed, 20, 2, 1900)[:24], shutOut(history.Failed, 20, 2, 1900)[400:]...), judged, false},
		{"one acquire waits without success", append(shutOut(unk, 1, 0, 100)[:400:400], step{1, 7000, acq, unk, 100, 1900, 0, 0}), judged, true},
		{"one acquire waits for a while", append(shutOut(unk, 1, 0, 100)[:400:400], step{1, 7000, acq, held, 100, 501, 0, 0}, step{1, 7000, rel, freed, 501, 502, 0, 0}), judged, false},
		{"nothing is known of the clients' limits", shutOut(history.Failed, 20, 2, 1900), Options{Takeover: 200}, false},
	} {
		r := Check(played(tc.steps, 2100), tc.opt)
		if got := hasWitness(r, ShutOut); got != tc.stuck || tc.stuck && (r.Liveness.Value != Stuck || r.ShutOut.Client != 1 || r.ShutOut.Granted == 0) {
			t.Errorf("%s: %v, %+v, witness %v", tc.name, r.Liveness, r.ShutOut, got)
		}
	}
}
