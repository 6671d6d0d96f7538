package checker

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
)

// A grant comes before its lease is over, and an answer before its limit, unless the
// client could not run meanwhile.
func TestLateAnswers(t *testing.T) {
	const s = int64(time.Second)
	grant := func(returned, leaseEnd int64) *history.History {
		h := played([]step{{0, 0, acq, held, s, returned, 0, 0}, {0, 0, rel, freed, 30 * s, 31 * s, 0, 0}}, 40*s)
		h.Calls[0].LeaseEnd = leaseEnd
		return h
	}
	leased := Options{Leased: true, TTL: 2 * time.Second}
	limited := Options{AcquireLimit: 5 * time.Second}
	paused := func(o Options, from, to int64) Options {
		o.Paused = []Interval{{Client: 0, From: from, To: to}}
		return o
	}
	skewed := leased
	skewed.LeaseEndsDoubtful = true
	for _, tc := range []struct {
		name string
		h    *history.History
		opt  Options
		want Class
	}{
		{"held in time", grant(2*s, 3*s), leased, ""},
		{"held a moment after its lease", grant(3*s+s/10, 3*s), leased, ""},
		{"held a second after its lease", grant(4*s, 3*s), leased, LateGrant},
		{"its client was stopped then", grant(8*s, 3*s), paused(leased, 2*s, 8*s), ""},
		{"its client was stopped long before", grant(8*s, 3*s), paused(leased, s, 2*s), LateGrant},
		{"its client's clock was set", grant(4*s, 3*s), skewed, ""},
		{"no lease recorded", grant(9*s, 0), leased, ""},
		{"within its limit", grant(6*s, 0), limited, ""},
		{"long after its limit", grant(9*s, 0), limited, LateAnswer},
		{"after its limit, since its client was stopped", grant(9*s, 0), paused(limited, 5*s, 9*s), ""},
		{"a busy answer after the limit", played([]step{{0, 0, acq, unk, s, 9 * s, 0, 0}, {1, 1, acq, held, s, 2 * s, 0, 0}, {1, 1, rel, freed, 3 * s, 4 * s, 0, 0}}, 40*s), limited, LateAnswer},
		{"never answered", played([]step{{0, 0, acq, history.Open, s, 0, 0, 0}, {1, 1, acq, held, s, 2 * s, 0, 0}, {1, 1, rel, freed, 3 * s, 4 * s, 0, 0}}, 40*s), limited, ""},
	} {
		r := Check(tc.h, tc.opt)
		if want := tc.want != ""; (r.BreachTotal() == 1) != want || want && (r.Breaches[tc.want] != 1 || !hasWitness(r, tc.want)) || !want && r.BreachTotal() > 0 {
			t.Errorf("%s: %v, want %q", tc.name, r.Breaches, tc.want)
		}
	}
}

// Answers that deny what the lock did are found by what follows them.
func TestAnswersThatLie(t *testing.T) {
	for _, tc := range []struct {
		name  string
		steps []step
		opt   Options
		want  Class
	}{
		{"failed, and released after all", []step{{0, 0, acq, history.Failed, 0, 10, 0, 0}, {0, 0, rel, freed, 20, 30, 0, 0}}, Options{}, FalseDefinite},
		{"failed, and another is refused", []step{{0, 0, acq, history.Failed, 0, 10, 0, 0}, {1, 1, try, busy, 20, 30, 0, 0}}, Options{}, UnexplainedBusy},
		{"failed, and free", []step{{0, 0, acq, history.Failed, 0, 10, 0, 0}, {1, 1, try, held, 20, 30, 0, 0}, {1, 1, rel, freed, 40, 50, 0, 0}}, Options{}, ""},
		{"a mutex reported lost", []step{{0, 0, acq, held, 0, 10, 0, 0}, {0, 0, rel, lost, 20, 30, 0, 0}}, Options{}, LostLock},
		{"a lease reported lost before its end", []step{{0, 0, acq, held, 0, 10, 0, 0}, {0, 0, rel, lost, 20, 30, 0, 0}}, Options{Leased: true, TTL: 100}, LostLock},
		{"a lease reported lost after its end", []step{{0, 0, acq, held, 0, 10, 0, 0}, {0, 0, rel, lost, 120, 130, 0, 0}}, Options{Leased: true, TTL: 100}, ""},
		{"a renewal of another's lock succeeds", []step{
			{0, 0, acq, held, 0, 10, 0, 0}, {1, 1, acq, held, 50, 60, 0, 0}, {0, 0, ext, renewed, 70, 80, 0, 0}, {1, 1, rel, freed, 90, 95, 0, 0},
		}, Options{Leased: true}, DoubleHold},
		{"a renewal before the other's grant", []step{
			{0, 0, acq, held, 0, 10, 0, 0}, {0, 0, ext, renewed, 20, 30, 0, 0}, {1, 1, acq, held, 50, 60, 0, 0}, {1, 1, rel, freed, 90, 95, 0, 0},
		}, Options{Leased: true}, ""},
	} {
		r := Check(played(tc.steps, 200), tc.opt)
		if want := tc.want != ""; want && r.Breaches[tc.want] == 0 || !want && r.BreachTotal() > 0 {
			t.Errorf("%s: %v, want %q", tc.name, r.Breaches, tc.want)
		}
	}
}
