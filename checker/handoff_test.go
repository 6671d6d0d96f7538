package checker

import (
	"strings"
	"testing"
)

func TestHandoff(t *testing.T) {
	t.Parallel()
	// Client 0 has released the key by 20, client 1 waits for it from 5 to 90.
	released := []step{{0, 0, acq, held, 0, 1, 0, 0}, {0, 0, rel, freed, 10, 20, 0, 0}}
	waited := []step{{1, 1, acq, held, 5, 90, 0, 0}, {1, 1, rel, freed, 91, 92, 0, 0}}
	with := func(steps ...step) []step {
		return append(append(steps[:len(steps):len(steps)], released...), waited...)
	}
	for _, tc := range []struct {
		name  string
		steps []step
		opt   Options
		free  int64 // after confirmed releases; more than 30 is too long
	}{
		{"the wake-up is lost", with(), Options{}, 70},
		{"the bound of a takeover alone", with(), Options{Handoff: -1}, 0},
		{"the release is not confirmed", append([]step{released[0], {0, 0, rel, unk, 10, 20, 0, 0}}, waited...), Options{}, 0},
		{"the lease is reported lost", append([]step{released[0], {0, 0, rel, lost, 10, 20, 0, 0}}, waited...), Options{}, 0},
		{"it is confirmed at the second call", append([]step{released[0], {0, 0, rel, unk, 10, 40, 0, 0}, {0, 0, rel, freed, 50, 70, 0, 0}}, waited...), Options{}, 20},
		{"no client had the key before", waited, Options{}, 0},
		{"another acquire has no answer", with(step{2, 2, acq, unk, 2, 22, 0, 0}), Options{}, 2},
		{"and is cleaned up", with(step{2, 2, acq, unk, 2, 22, 0, 0}, step{2, 2, cln, freed, 22, 50, 0, 0}), Options{}, 40},
		{"it waits beside the other", with(step{2, 2, acq, unk, 2, 95, 0, 0}), Options{}, 70},
		{"the machine stalled another client", with(), Options{Paused: []Interval{{2, 20, 70}}}, 20},
		{"a fault, and what it left", with(), Options{Disturbed: []Interval{{From: 0, To: 65}}}, 25},
		{"an exception", with(), Options{Exceptions: []Interval{{From: 30, To: 75}}}, 25},
	} {
		tc.opt.Takeover = 1000
		if tc.opt.Handoff == 0 {
			tc.opt.Handoff = 30
		}
		r := Check(played(tc.steps, 100), tc.opt)
		stuck := tc.free > 30
		want := Live
		if stuck {
			want = Stuck
		}
		if r.Handoff.Length() != tc.free || hasWitness(r, SlowHandoff) != stuck || r.Liveness.Value != want {
			t.Errorf("%s: %+v, %v, want free for %d", tc.name, r.Handoff, r.Liveness, tc.free)
		}
		if stuck && !strings.Contains(r.Liveness.Why, "after a confirmed release, the bound of a handoff is 30ns") {
			t.Errorf("%s: %s", tc.name, r.Liveness.Why)
		}
	}
}

// A batch also waits for its other keys.
func TestHandoffOfABatch(t *testing.T) {
	t.Parallel()
	steps := []step{
		{0, 0, acq, held, 0, 1, 0, 0}, {0, 0, rel, freed, 10, 20, 0, 0},
		{1, 1, acq, held, 5, 90, 0, 0}, {1, 1, also, held, 5, 90, 1, 0}, {1, 1, rel, freed, 91, 92, 0, 0},
	}
	if r := Check(played(steps, 100), Options{Takeover: 1000, Handoff: 30}); r.Handoff.Length() != 0 || r.Liveness.Value != Live {
		t.Errorf("%+v, %v", r.Handoff, r.Liveness)
	}
}
