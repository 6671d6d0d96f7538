package checker

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/history"
)

// The waiter for a stuck key does not show the cause: its witness has the attempt too
// that may have left it taken.
func TestWitnessOfWhatLeftAKeyTaken(t *testing.T) {
	t.Parallel()
	const acq, rel, cln = history.KindAcquire, history.KindRelease, history.KindCleanup
	const held, freed, open, unknown = history.Held, history.Released, history.Open, history.Unknown
	for _, tc := range []struct {
		name  string
		build func(b *builder)
		died  []Death
		want  []int // the attempts of its calls
	}{
		{"no client ever had it", func(*builder) {}, nil, []int{9}},
		{"a client died as it asked", func(b *builder) {
			b.add(0, 0, acq, held, 1, 2)
			b.add(0, 0, rel, freed, 10, 11)
			b.add(1, 1, acq, open, 5, 0)
		}, []Death{{Client: 1, At: 13}}, []int{9, 1}},
		{"it died in the queue, and others were served before its turn", func(b *builder) {
			b.add(0, 0, acq, held, 1, 2)
			b.add(1, 1, acq, open, 3, 0)
			b.add(0, 0, rel, freed, 8, 9)
			b.add(2, 2, acq, held, 3, 9)
			b.add(2, 2, rel, freed, 12, 13)
		}, []Death{{Client: 1, At: 5}}, []int{9, 1}},
		{"the release of the last holder was not confirmed", func(b *builder) {
			b.add(0, 0, acq, held, 1, 2)
			b.add(0, 0, rel, unknown, 10, 11)
		}, nil, []int{9, 0, 0}},
		{"the last holder died", func(b *builder) { b.add(0, 0, acq, held, 1, 2) }, []Death{{Client: 0, At: 10}}, []int{9, 0}},
		{"a hold without an end, which another followed", func(b *builder) {
			b.add(0, 0, acq, held, 1, 2)
			b.add(1, 1, acq, held, 6, 7)
			b.add(1, 1, rel, freed, 10, 11)
		}, []Death{{Client: 0, At: 4}}, []int{9, 1, 1}},
		{"an acquire that was cleaned up", func(b *builder) {
			b.add(0, 0, acq, held, 1, 2)
			b.add(0, 0, rel, freed, 10, 11)
			b.add(1, 1, acq, unknown, 3, 9)
			b.add(1, 1, cln, freed, 9, 12)
		}, nil, []int{9, 0, 0}},
		{"an acquire of which nothing is known", func(b *builder) {
			b.add(0, 0, acq, held, 1, 2)
			b.add(0, 0, rel, freed, 10, 11)
			b.add(1, 1, acq, unknown, 3, 14)
		}, nil, []int{9, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBuilder()
			tc.build(b)
			b.add(7, 9, acq, history.Failed, 8, 90)
			h := b.seal(100)
			for i := range h.Streams {
				s := &h.Streams[i]
				s.Sealed = !slices.ContainsFunc(tc.died, func(d Death) bool { return d.Client == s.Client })
			}
			r := Check(h, Options{Takeover: 20, Died: tc.died})
			i := slices.IndexFunc(r.Witnesses, func(w Witness) bool { return w.Class == StuckKey })
			if i < 0 {
				t.Fatalf("not stuck: %+v\n%s", r.Stuck, show(h))
			}
			w := r.Witnesses[i]
			got := make([]int, len(w.Calls))
			for k, c := range w.Calls {

				got[k] = int(c.Attempt[7]) - 1 // as id has it
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("calls of the attempts %v, want %v\n%s", got, tc.want, show(h))
			}
		})
	}
}

// Faults on servers excuse a part of the time that a key stays free, each once. They do
// not begin the bound anew, unless a killed client may have left its lock.
func TestExcusesAreSummed(t *testing.T) {
	free := func(until int64) *history.History {
		return played([]step{
			{0, 0, acq, held, 0, 1, 0, 0}, {0, 0, rel, freed, 9, 10, 0, 0},
			{1, 1, acq, held, 5, until, 0, 0}, {1, 1, rel, freed, until + 1, until + 2, 0, 0},
		}, 300)
	}
	var exempt []Interval
	for at := int64(20); at < 120; at += 20 { // six moves of the leader, 10 each
		exempt = append(exempt, Interval{From: at, To: at + 10})
	}
	for _, tc := range []struct {
		name  string
		until int64
		opt   Options
		value string
		sum   int64
		away  int64
	}{
		{"all of it within the bound", 40, Options{Takeover: 30, Exceptions: exempt}, Live, 21, 10},
		{"each part is within the bound, the sum is not", 119, Options{Takeover: 30, Exceptions: exempt}, Stuck, 60, 50},
		{"most of it is an exception", 119, Options{Takeover: 30, Exceptions: []Interval{{From: 20, To: 110}}}, Live, 20, 90},
		{"a client was killed before", 119, Options{Takeover: 30, Exceptions: exempt, Died: []Death{{Client: 7, At: 3}}}, Live, 11, 0},
	} {
		r := Check(free(tc.until), tc.opt)
		if r.Liveness.Value != tc.value || r.Stuck.Length() != tc.sum || r.Stuck.Exceptions != tc.away {
			t.Errorf("%s: %v, %+v", tc.name, r.Liveness, r.Stuck)
		}
		if tc.value == Stuck && !strings.Contains(r.Liveness.Why, "110ns, 50ns of it a liveness exception for faults, its bound") {
			t.Errorf("%s: %v", tc.name, r.Liveness.Why)
		}
	}
}
