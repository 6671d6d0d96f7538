package checker

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lockbench/lockbench/history"
)

func TestSortTimed(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	tie := func(a, b int32) int { return cmp.Compare(a, b) }
	for range 2000 {
		list := make([]timed, rng.IntN(200))
		for i := range list {
			list[i] = timed{rng.Int64N(100), int32(i)}
		}
		whole := func(a, b timed) int { return cmp.Or(cmp.Compare(a.at, b.at), tie(a.number, b.number)) }
		for from, n := 0, rng.IntN(60)+1; from < len(list); from += n { // in stretches
			slices.SortFunc(list[from:min(from+n, len(list))], whole)
		}
		want := slices.SortedFunc(slices.Values(list), whole)
		if sortTimed(list, tie); !slices.Equal(list, want) {
			t.Fatalf("got %v, want %v", list, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	n := newNumbers(0)
	want := map[history.Attempt]int32{}
	for range 20_000 {
		var id history.Attempt
		binary.BigEndian.PutUint32(id[rng.IntN(3)*4:], rng.Uint32N(3000)) // alike, as counted ones are
		number, fresh := n.of(id, n.hash(id))
		was, known := want[id]
		if !known {
			was = int32(len(want))
			want[id] = was
		}
		if number != was || fresh == known || *n.ids.at(number) != id {
			t.Fatalf("%v has the number %d (new: %v), want %d (new: %v)", id, number, fresh, was, !known)
		}
	}
}
