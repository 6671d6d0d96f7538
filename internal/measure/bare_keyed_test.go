package measure

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/history/historytest"
	"github.com/lockbench/lockbench/internal/scenario"
)

// bareWhole is Bare of a history in memory, judged at once.
func bareWhole(h *history.History, m Model) scenario.Safety {
	d := m.derivation(h)
	grants, tokens := 0, 0
	for i := range h.Calls {
		c := &h.Calls[i]
		if d.samples.Start == 0 || c.Invoke < d.samples.Start {
			d.samples.Start = c.Invoke
		}
		if asks(c) && c.Outcome == history.Held {
			grants++
			if c.Fence != 0 {
				tokens++
			}
		}
	}
	d.info.Fencing = tokens > 0
	o := d.promised()
	o.TokensMissing, o.LeaseEndsDoubtful = tokens < grants, true
	o.JudgeClients = false
	d.answers(checker.Check(h, o), o)
	return d.result.Safety
}

// TestBareKeyedOfAllShapes: for histories of any shape and any model, the answers
// key by key are those of the whole history, witnesses included.
func TestBareKeyedOfAllShapes(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(71, 72))
	seen := map[string]int{}
	for i := range 60 {
		l := historytest.Load{
			Calls: 200 + rng.IntN(3000), Keys: []int{1, 3, 100}[i%3], Clients: []int{2, 8, 128}[rng.IntN(3)],
			Unknown: []float64{0, 0.01, 0.05, 0.5, 1}[rng.IntN(5)], Hot: rng.IntN(2) == 0, Invalid: rng.IntN(2) == 0,
		}
		path := filepath.Join(t.TempDir(), "history.lbh")
		if err := history.Save(path, historytest.Simulate(l, uint64(i))); err != nil {
			t.Fatal(err)
		}
		h, err := history.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		k, err := history.ReadKeyed(path, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []Model{{Kind: ModelMutex, Takeover: time.Second}, {Kind: ModelReentrant}, {Kind: ModelReadWrite}, {Kind: ModelLease, TTL: time.Millisecond}, {}} {
			want := bareWhole(h, m)
			got, err := Bare(k, m)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%+v by %+v: %v\n%+v\nwant\n%+v", l, m, err, got, want)
			}
			seen[fmt.Sprint(want.Verdict, " ", want.Promise)]++
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	if seen[fmt.Sprint(scenario.Safe, " ", scenario.Kept)] < 20 || seen[fmt.Sprint(scenario.Unsafe, " ", scenario.Broken)] < 20 {
		t.Errorf("too few of some answers to judge: %v", seen)
	}
}
