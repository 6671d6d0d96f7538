package measure

import (
	"testing"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/scenario"
)

func TestBare(t *testing.T) {
	s := newStory(leased(), 2)
	s.hold(0, "a", 10, 20, 200)
	s.hold(1, "b", 30, 210, 220)
	if got := Bare(s.in.history); got.Verdict != scenario.Safe || got.Promise != scenario.Kept || got.Liveness != scenario.Undecided {
		t.Errorf("a good history: %+v", got)
	}
	s.hold(0, "c", 300, 310, 400)
	s.hold(1, "d", 320, 330, 420) // overlaps, and both released well
	got := Bare(s.in.history)
	if got.Verdict != scenario.Unsafe || got.Promise != scenario.Broken || len(got.Witnesses) != 2 {
		t.Errorf("a bad history: %+v", got)
	}
	s.in.history.Damage = []history.Damage{{What: "a bit"}}
	s.in.history.Calls = s.in.history.Calls[:4]
	if got := Bare(s.in.history); got.Verdict != scenario.Undecided || len(got.Damage) != 1 {
		t.Errorf("a damaged history: %+v", got)
	}
}
