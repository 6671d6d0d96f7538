package measure

import (
	"reflect"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// bare judges a history key by key, and as a whole.
func bare(t *testing.T, h *history.History, m Model) scenario.Safety {
	t.Helper()
	k := history.Keep(h)
	defer k.Close()
	got, err := Bare(k, m)
	if want := bareWhole(h, m); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v\nwant\n%+v", err, got, want)
	}
	return got
}

func TestBare(t *testing.T) {
	s := newStory(leased(), 2)
	s.hold(0, "a", 10, 20, 200)
	s.hold(1, "b", 30, 210, 220)
	if got := bare(t, s.in.history, Model{}); got.Verdict != scenario.Safe || got.Promise != scenario.Kept || got.Liveness != scenario.Undecided {
		t.Errorf("a good history: %+v", got)
	}
	s.hold(0, "c", 300, 310, 400)
	s.hold(1, "d", 320, 330, 420) // overlaps, and both released well
	got := bare(t, s.in.history, Model{})
	if got.Verdict != scenario.Unsafe || got.Promise != scenario.Broken || len(got.Witnesses) != 2 {
		t.Errorf("a bad history: %+v", got)
	}
	s.in.history.Damage = []history.Damage{{What: "a bit"}}
	s.in.history.Calls = s.in.history.Calls[:4]
	if got := bare(t, s.in.history, Model{}); got.Verdict != scenario.Undecided || len(got.Damage) != 1 {
		t.Errorf("a damaged history: %+v", got)
	}
}

// TestBareModels: the same calls keep one lock's word and break another's.
func TestBareModels(t *testing.T) {
	lapse := newStory(leased(), 2) // the second is granted before the first lets go
	lapse.hold(0, "a", 10, 20, 5000)
	lapse.hold(1, "b", 30, 3000, 4000)
	last := &lapse.in.history.Calls[len(lapse.in.history.Calls)-1]
	for i := range lapse.in.history.Calls {
		if c := &lapse.in.history.Calls[i]; c.Kind == history.KindRelease && c.Client == 0 {
			last = c
		}
	}
	last.Outcome = history.Lost
	for _, m := range []struct {
		model   Model
		promise string
	}{
		{Model{}, scenario.Kept},
		{Model{Kind: ModelLease}, scenario.Kept},
		{Model{Kind: ModelLease, TTL: time.Second}, scenario.Kept},
		{Model{Kind: ModelLease, TTL: time.Minute}, scenario.Broken},
		{Model{Kind: ModelMutex}, scenario.Broken},
		{Model{Kind: ModelReadWrite}, scenario.Broken},
	} {
		if got := bare(t, lapse.in.history, m.model); got.Verdict != scenario.Unsafe || got.Promise != m.promise {
			t.Errorf("%+v: %s, promise %s (%s), want %s", m.model, got.Verdict, got.Promise, got.Why["promise"], m.promise)
		}
	}
}
