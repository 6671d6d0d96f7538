package measure

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/history/historytest"
	"github.com/lockbench/lockbench/internal/scenario"
)

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
			want := Bare(h, m)
			got, err := BareKeyed(k, m)
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
