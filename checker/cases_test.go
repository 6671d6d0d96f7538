package checker

import (
	"testing"

	"github.com/lockbench/lockbench/history"
)

// Each simpler rule that one might believe in has a history that it gets wrong,
// one way or the other. These are those histories.
func TestRulesThatAreWrong(t *testing.T) {
	const open, w = history.Open, 0
	mutex, lease := Options{}, Options{Leased: true}
	for _, tc := range []struct {
		name  string
		opt   Options
		steps []step
		want  map[Class]int64
	}{
		{"'a refused try must meet a hold from the call of its acquire to the return of its release': the first hold was over by 4", mutex, []step{
			{0, 0, acq, held, 0, 1, 0, w}, {0, 0, rel, freed, 2, 100, 0, w}, {1, 1, acq, held, 3, 4, 0, w}, {1, 1, rel, freed, 5, 6, 0, w},
			{2, 2, try, busy, 50, 51, 0, w},
		}, map[Class]int64{UnexplainedBusy: 1}},
		{"'it must meet a time at which the lock was certainly held': the release may take effect late", mutex, []step{
			{0, 0, acq, held, 0, 1, 0, w}, {0, 0, rel, freed, 2, 10, 0, w}, {2, 2, try, busy, 5, 6, 0, w},
		}, nil},
		{"the same between two holds", mutex, []step{
			{0, 0, acq, held, 0, 1, 0, w}, {0, 0, rel, freed, 2, 8, 0, w}, {1, 1, acq, held, 3, 9, 0, w}, {1, 1, rel, freed, 20, 21, 0, w},
			{2, 2, try, busy, 5, 6, 0, w},
		}, nil},
		{"refused between two holds that leave a gap", mutex, []step{
			{0, 0, acq, held, 0, 1, 0, w}, {0, 0, rel, freed, 2, 3, 0, w}, {1, 1, acq, held, 7, 9, 0, w}, {1, 1, rel, freed, 20, 21, 0, w},
			{2, 2, try, busy, 4, 6, 0, w},
		}, map[Class]int64{UnexplainedBusy: 1}},
		{"a plain lock refuses its own holder", mutex, []step{
			{0, 0, acq, held, 0, 1, 0, w}, {0, 1, try, busy, 2, 3, 0, w}, {0, 0, rel, freed, 4, 5, 0, w},
		}, nil},
		{"a re-entrant lock must not", Options{Reentrant: true}, []step{
			{0, 0, acq, held, 0, 1, 0, w}, {0, 1, try, busy, 2, 3, 0, w}, {0, 0, rel, freed, 4, 5, 0, w},
		}, map[Class]int64{UnexplainedBusy: 1}},
		{"a blocking acquire that gave up proves nothing about others", mutex, []step{{0, 0, acq, history.Failed, 0, 9, 0, w}}, nil},

		{"'leave unknown acquires out': it may have taken effect", mutex, []step{{0, 0, acq, unk, 0, 5, 0, w}, {1, 1, try, busy, 10, 11, 0, w}}, nil},
		{"'an unknown acquire explains any refusal': no client released it, and another was granted", mutex, []step{
			{0, 0, acq, unk, 0, 5, 0, w}, {1, 1, try, busy, 10, 11, 0, w}, {2, 2, acq, held, 20, 21, 0, w},
		}, map[Class]int64{UnexplainedBusy: 1}},
		{"the same of a lease, which may have ended", lease, []step{
			{0, 0, acq, unk, 0, 5, 0, w}, {1, 1, try, busy, 10, 11, 0, w}, {2, 2, acq, held, 20, 21, 0, w},
		}, nil},
		{"released too late for the next grant", mutex, []step{
			{0, 0, acq, unk, 0, 5, 0, w}, {0, 0, cln, unk, 30, 40, 0, w}, {1, 1, try, busy, 10, 11, 0, w}, {2, 2, acq, held, 20, 21, 0, w},
		}, map[Class]int64{UnexplainedBusy: 1}},
		{"one unknown acquire serves one gap", mutex, []step{
			{0, 0, acq, unk, 0, 2, 0, w}, {0, 0, cln, unk, 3, 4, 0, w},
			{1, 1, try, busy, 6, 7, 0, w}, {2, 2, acq, held, 9, 10, 0, w}, {2, 2, rel, freed, 11, 12, 0, w}, {1, 3, try, busy, 15, 16, 0, w},
		}, map[Class]int64{UnexplainedBusy: 1}},
		{"and two serve two", mutex, []step{
			{0, 0, acq, unk, 0, 2, 0, w}, {0, 0, cln, unk, 3, 4, 0, w}, {3, 4, acq, unk, 0, 2, 0, w}, {3, 4, cln, unk, 3, 4, 0, w},
			{1, 1, try, busy, 6, 7, 0, w}, {2, 2, acq, held, 9, 10, 0, w}, {2, 2, rel, freed, 11, 12, 0, w}, {1, 3, try, busy, 15, 16, 0, w},
		}, nil},

		{"a slow grant that a later one of lasting effect must come after: it goes first, and explains nothing later", lease, []step{
			{0, 0, acq, held, 0, 5, 0, w}, {1, 1, acq, held, 2, 5, 0, w}, {0, 0, rel, lost, 8, 9, 0, w}, {2, 2, try, busy, 12, 13, 0, w},
		}, nil},
		{"with unique attempts a late release frees no other attempt", mutex, []step{
			{0, 0, acq, open, 0, 0, 0, w}, {1, 1, acq, held, 5, 6, 0, w}, {1, 1, rel, freed, 7, 8, 0, w}, {0, 0, rel, freed, 9, 10, 0, w},
		}, nil},

		{"a reader is refused for a reader", mutex, []step{
			{0, 0, acq, held, 0, 1, 0, read}, {0, 0, rel, freed, 8, 9, 0, read}, {1, 1, try, busy, 3, 4, 0, read},
		}, map[Class]int64{UnexplainedBusy: 1}},
		{"a writer is refused for a reader", mutex, []step{
			{0, 0, acq, held, 0, 1, 0, read}, {0, 0, rel, freed, 8, 9, 0, read}, {1, 1, try, busy, 3, 4, 0, w},
		}, nil},
		{"'readers meet the whole time of a writer's calls': a reader was in by 4", mutex, []step{
			{0, 0, acq, held, 0, 1, 0, w}, {0, 0, rel, freed, 2, 100, 0, w}, {1, 1, acq, held, 3, 4, 0, read}, {1, 1, rel, freed, 60, 61, 0, read},
			{2, 2, try, busy, 50, 51, 0, read},
		}, map[Class]int64{UnexplainedBusy: 1}},
		{"'pairs suffice': two readers together leave no moment for the writer", lease, []step{
			{0, 0, acq, held, 0, 1, 0, read}, {0, 0, rel, freed, 6, 7, 0, read}, {1, 1, acq, held, 3, 4, 0, read}, {1, 1, rel, freed, 10, 11, 0, read},
			{2, 2, acq, held, 2, 8, 0, w},
		}, map[Class]int64{DoubleHold: 1}},
		{"the same with a moment between them", lease, []step{
			{0, 0, acq, held, 0, 1, 0, read}, {0, 0, rel, freed, 5, 7, 0, read}, {1, 1, acq, held, 3, 5, 0, read}, {1, 1, rel, freed, 10, 11, 0, read},
			{2, 2, acq, held, 2, 8, 0, w},
		}, nil},

		{"the try of a lock whose tries yield, beside a waiting acquire", Options{TriesYield: true}, []step{
			{0, 0, acq, history.Failed, 0, 9, 0, w}, {1, 1, try, busy, 3, 4, 0, w},
		}, nil},
		{"the same alone", Options{TriesYield: true}, []step{{1, 1, try, busy, 3, 4, 0, w}, {0, 0, acq, history.Failed, 5, 9, 0, w}}, map[Class]int64{UnexplainedBusy: 1}},
		{"the batch is refused for the sake of another key", mutex, []step{
			{0, 0, also, open, 0, 0, 2, w}, {0, 0, try, busy, 1, 2, 1, w}, {1, 1, acq, held, 0, 1, 2, w},
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := Check(played(tc.steps, 200), tc.opt)
			var sum int64
			for class, n := range tc.want {
				sum += n
				if r.Breaches[class] != n || !hasWitness(r, class) {
					t.Errorf("%d %s, want %d", r.Breaches[class], class, n)
				}
			}
			if r.BreachTotal() != sum || r.Undecided+r.Malformed > 0 {
				t.Errorf("breaches %v, undecided %d, malformed %d", r.Breaches, r.Undecided, r.Malformed)
			}
		})
	}
}

// A token must grow with the holds, not only with the questions.
func TestTokensFollowTheHolds(t *testing.T) {
	steps := []step{
		{0, 0, acq, held, 0, 2, 0, 0}, {0, 0, rel, freed, 3, 4, 0, 0},
		{1, 1, acq, held, 1, 6, 0, 0}, {1, 1, rel, freed, 8, 9, 0, 0},
	}
	for _, tokens := range [][2]uint64{{1, 2}, {2, 1}} {
		h := played(steps, 100)
		h.Calls[0].Fence, h.Calls[2].Fence = tokens[0], tokens[1]
		r := Check(h, Options{Fencing: true})
		if want := int64(tokens[0] - 1); r.Breaches[TokenRegression] != want {
			t.Errorf("tokens %v: %d regressions, want %d", tokens, r.Breaches[TokenRegression], want)
		}
	}
}

// More orders than can be followed: the answer is unknown, with the reason.
func TestTooManyOrders(t *testing.T) {
	var steps []step
	for n := range 300 {
		steps = append(steps,
			step{uint32(n), n, acq, unk, 0, 5, 0, 0}, step{uint32(n), n, cln, unk, 6, 7, 0, 0}, step{uint32(n), n, cln, freed, 900, 1000 + int64(n), 0, 0})
	}
	steps = append(steps, step{1000, 1000, try, busy, 400, 410, 0, 0}, step{1001, 1001, acq, held, 950, 960, 0, 0}, step{1001, 1001, rel, freed, 961, 962, 0, 0})
	r := Check(played(steps, 2000), Options{})
	if r.Promise.Value != Unknown || r.Undecided != 1 || r.UndecidedWhy == "" || r.BreachTotal() != 0 {
		t.Errorf("promise %v, undecided %d", r.Promise, r.Undecided)
	}
}
