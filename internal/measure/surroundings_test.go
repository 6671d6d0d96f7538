package measure

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// freed has two clients that held one lock because a third released it late, and
// many that had it long before and long after.
func freed() *story {
	s := newStory(leased(), 4)
	for i := range 40 {
		at := float64(100 + 10*i)
		s.hold(3, fmt.Sprintf("before%d", i), at, at+1, at+5)
	}
	s.call(2, "late", history.KindAcquire, history.Held, 3000, 3001).Fence = 1
	s.call(2, "late", history.KindRelease, history.Unknown, 3010, 3510)
	s.call(0, "a", history.KindAcquire, history.Held, 3020, 5100).Fence = 2
	s.call(2, "late", history.KindCleanup, history.Released, 5150, 5160)
	s.call(1, "b", history.KindAcquire, history.Held, 5110, 5200).Fence = 3
	s.call(0, "a", history.KindRelease, history.Lost, 5300, 5301)
	s.call(1, "b", history.KindRelease, history.Released, 5400, 5401)
	for i := range 40 {
		at := float64(6000 + 10*i)
		s.hold(3, fmt.Sprintf("after%d", i), at, at+1, at+5)
	}
	return s
}

func TestSurroundings(t *testing.T) {
	s := freed()
	r := s.result()
	i := slices.IndexFunc(r.Safety.Witnesses, func(w scenario.Witness) bool { return w.Class == "overlap" })
	if i < 0 {
		t.Fatalf("no overlap: %+v", r.Safety)
	}
	w := r.Safety.Witnesses[i]
	var culprit bool
	attempts := map[string]int{}
	for j, c := range w.Around {
		attempts[c.Attempt]++
		culprit = culprit || c.Client == 2 && c.Kind == "cleanup" && c.Outcome == "released"
		if j > 0 && c.InvokeNS < w.Around[j-1].InvokeNS {
			t.Errorf("%+v stands after %+v", c, w.Around[j-1])
		}
		if slices.Contains(w.Calls, c) {
			t.Errorf("%+v proves the violation and is shown twice", c)
		}
		if c.InvokeNS < 3000*ms {
			t.Errorf("%+v was over long before", c)
		}
	}
	if !culprit {
		t.Errorf("the client that freed the lock is not shown: %+v", w.Around)
	}
	if len(attempts) > aroundAttempts {
		t.Errorf("%d attempts", len(attempts))
	}
	// A hold is shown with its end.
	for _, c := range w.Around {
		if c.Client == 3 && attempts[c.Attempt] != 2 {
			t.Errorf("half of an attempt: %+v", c)
		}
	}
	seen := map[string]bool{}
	for _, w := range r.Safety.Witnesses {
		if seen[w.Class] && len(w.Around) > 0 {
			t.Errorf("the second %s shows all again", w.Class)
		}
		seen[w.Class] = true
	}
}

// A client that had recorded its loss, and whose release was confirmed when another
// client held the lock, did not overlap it: there is no length.
func TestWitnessHasNoNegativeLength(t *testing.T) {
	s := newStory(leased(), 2)
	s.call(0, "a", history.KindAcquire, history.Held, 10, 40).Fence = 1
	s.call(0, "a", history.KindLost, history.Lost, 1900, 1900)
	s.call(1, "b", history.KindAcquire, history.Held, 50, 2100).Fence = 2
	s.call(0, "a", history.KindRelease, history.Released, 2500, 2501)
	s.call(1, "b", history.KindRelease, history.Lost, 2600, 2601)
	r := s.result()
	if len(r.Safety.Witnesses) == 0 {
		t.Fatalf("no witness: %+v", r.Safety)
	}
	for _, w := range r.Safety.Witnesses {
		if w.LengthNS < 0 {
			t.Errorf("%s of %d ns", w.Class, w.LengthNS)
		}
	}
}
