package workloads

import (
	"math"
	"slices"
	"testing"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// draw counts n choices among keys, spread over a few clients.
func draw(t *testing.T, l scenario.Load, keys, n int, seed uint64) []float64 {
	t.Helper()
	c := must[*keyChooser](t)(newKeyChooser(l, keys, 4))
	counts := make([]float64, keys)
	for client := range uint32(4) {
		r := newRand(seed, client, streamKey)
		for range n / 4 {
			counts[c.next(client, r)]++
		}
	}
	return counts
}

// chiSquare over its degrees of freedom; for honest draws it is near 1, and
// below 1.5 with 99 degrees but for one time in a thousand. Seeds are fixed, so
// the tests are not a matter of luck.
func chiSquare(counts []float64, share func(k int) float64) float64 {
	total := 0.0
	for _, c := range counts {
		total += c
	}
	sum := 0.0
	for k, c := range counts {
		want := share(k) * total
		sum += (c - want) * (c - want) / want
	}
	return sum / float64(len(counts)-1)
}

func TestUniformKeys(t *testing.T) {
	counts := draw(t, scenario.Load{Kind: scenario.Keys, Distribution: "uniform"}, 100, 200_000, 7)
	if x := chiSquare(counts, func(int) float64 { return 0.01 }); x > 1.5 {
		t.Errorf("chi square per degree %.2f: not uniform", x)
	}
}

func TestZipfKeys(t *testing.T) {
	for _, s := range []float64{1.01, 1.5, 2.5} {
		counts := draw(t, scenario.Load{Kind: scenario.Keys, Distribution: "zipf", ZipfS: s}, 100, 400_000, 7)
		sum := 0.0
		for k := 1; k <= 100; k++ {
			sum += math.Pow(float64(k), -s)
		}
		zipf := func(k int) float64 { return math.Pow(float64(k+1), -s) / sum }
		if x := chiSquare(counts, zipf); x > 1.6 {
			t.Errorf("s=%g: chi square per degree %.2f: not zipf", s, x)
		}
		// The known-bad case: another exponent is noticed.
		if x := chiSquare(counts, func(int) float64 { return 0.01 }); x < 10 {
			t.Errorf("s=%g: passes for uniform (%.2f)", s, x)
		}
	}
}

func TestKeysAreThereForAll(t *testing.T) {
	own := must[*keyChooser](t)(newKeyChooser(scenario.Load{Kind: scenario.Uncontended}, 4, 4))
	hot := must[*keyChooser](t)(newKeyChooser(scenario.Load{Kind: scenario.HotKey}, 4, 4))
	for c := range uint32(4) {
		if k := own.next(c, nil); k != c {
			t.Errorf("uncontended: client %d wants key %d", c, k)
		}
		if k := hot.next(c, nil); k != 0 {
			t.Errorf("hot-key: client %d wants key %d", c, k)
		}
	}
	for _, tt := range []struct {
		l    scenario.Load
		keys int
	}{
		{scenario.Load{Kind: scenario.Uncontended}, 3}, // clients would share
		{scenario.Load{Kind: scenario.HotKey}, 0},
		{scenario.Load{Kind: scenario.Keys, Distribution: "pareto"}, 3},
		{scenario.Load{Kind: scenario.Properties}, 3},
		{scenario.Load{Kind: scenario.Takeover}, 3},
		{scenario.Load{Kind: scenario.Batch, Batch: 4}, 3},
	} {
		if _, err := newKeyChooser(tt.l, tt.keys, 4); err == nil {
			t.Errorf("%+v with %d keys: no error", tt.l, tt.keys)
		}
	}
}

func TestChoicesFollowTheSeed(t *testing.T) {
	l := scenario.Load{Kind: scenario.Keys, Distribution: "zipf", ZipfS: 1.2}
	if !slices.Equal(draw(t, l, 50, 4000, 1), draw(t, l, 50, 4000, 1)) {
		t.Error("the same seed gave other choices")
	}
	if slices.Equal(draw(t, l, 50, 4000, 1), draw(t, l, 50, 4000, 2)) {
		t.Error("another seed gave the same choices")
	}
}

func TestAttemptsAreUnique(t *testing.T) {
	seen := map[history.Attempt]bool{}
	for _, seed := range []uint64{0, 1, 2, 1 << 63} { // neighbouring scenarios
		for process := range uint64(3) { // the same scenario again, in another process
			for client := range uint32(20) {
				g := newAttempts(seed, client, mix(process))
				for range 200 {
					a := g.next()
					if seen[a] || a.IsZero() {
						t.Fatalf("seed %d, process %d, client %d: %v again", seed, process, client, a)
					}
					seen[a] = true
				}
			}
		}
	}
}

func TestAssign(t *testing.T) {
	for _, tt := range []struct{ clients, workers, want int }{
		{1, 1, 1}, {8, 8, 8}, {8, 2, 2}, {7, 3, 3}, {3, 8, 3}, {5, 0, 1}, {1000, 7, 7},
	} {
		list := Assign(scenario.Scenario{Clients: tt.clients, Workers: tt.workers})
		if len(list) != tt.want {
			t.Errorf("%d clients on %d workers: %d processes, want %d", tt.clients, tt.workers, len(list), tt.want)
		}
		next := uint32(0)
		for _, w := range list {
			if even := tt.clients / len(list); len(w) < even || len(w) > even+1 {
				t.Errorf("%d clients on %d workers: one has %d", tt.clients, tt.workers, len(w))
			}
			for _, c := range w {
				if c != next {
					t.Errorf("%d clients on %d workers: client %d comes where %d should", tt.clients, tt.workers, c, next)
				}
				next++
			}
		}
		if int(next) != tt.clients {
			t.Errorf("%d clients on %d workers: %d assigned", tt.clients, tt.workers, next)
		}
	}
}
