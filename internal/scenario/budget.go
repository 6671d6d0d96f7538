package scenario

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// What a scenario takes besides its load (workers start, files are merged and
// judged, servers get well again), and a run (servers start, the report is
// written). Measured on two cores, and rounded up.
const (
	scenarioOverhead = 3500 * time.Millisecond
	runOverhead      = 20 * time.Second
)

// Selection is the part of a suite that fits a budget.
type Selection struct {
	Picked   []Scenario // in the order of the suite
	LeftOut  []LeftOut  // in the order of the suite's blocks
	Estimate time.Duration
	Whole    time.Duration // what the whole suite would take
}

// LeftOut tells what of a block was left out.
type LeftOut struct {
	Group     string
	Tells     int      // the block's rank; 0: it has none
	Scenarios int      // that are left out
	Recipes   []string // that do not run at all, sorted
	Runs      int      // recipes that do, if only with fewer repeats
}

// Within picks of f's scenarios the most telling ones that fit a budget, with so
// many run side by side. Everything is picked once before anything a second
// time; then by the rank of the block (Block.Tells); then each recipe in turn, so
// that none takes the room of the others. It is a function of its arguments
// alone.
func (f File) Within(budget time.Duration, scenarios []Scenario, parallel int) Selection {
	rank := map[string]int{}
	for _, b := range f.Scenarios {
		rank[b.Name] = b.rank()
	}
	sel := Selection{Whole: Estimate(scenarios, parallel)}
	taken := make([]bool, len(scenarios))
	so := estimate{parallel: parallel, lanes: map[string]time.Duration{}}
	for _, i := range byTurns(scenarios, rank) {
		with := so
		with.lanes = maps.Clone(so.lanes)
		with.add(scenarios[i])
		if with.time() <= budget {
			so, taken[i] = with, true
		}
	}
	for i, sc := range scenarios {
		if taken[i] {
			sel.Picked = append(sel.Picked, sc)
		}
	}
	sel.Estimate = so.time()
	sel.LeftOut = leftOut(f, scenarios, taken)
	return sel
}

// rank orders blocks: what has none comes last.
func (b Block) rank() int {
	if b.Tells == 0 {
		return math.MaxInt
	}
	return b.Tells
}

// byTurns orders the indices of scenarios from the most telling on.
func byTurns(scenarios []Scenario, rank map[string]int) []int {
	type place struct{ index, repeat, rank, turn int }
	type queue struct {
		recipe       string
		repeat, rank int
	}
	turns := map[queue]int{}
	places := make([]place, len(scenarios))
	for i, sc := range scenarios {
		q := queue{sc.Recipe, sc.Repeat, rank[sc.Group]}
		places[i] = place{i, q.repeat, q.rank, turns[q]}
		turns[q]++
	}
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.repeat, b.repeat), cmp.Compare(a.rank, b.rank), cmp.Compare(a.turn, b.turn))
	})
	order := make([]int, len(places))
	for i, p := range places {
		order[i] = p.index
	}
	return order
}

// Estimate is about how long a run of scenarios takes, with so many side by
// side.
func Estimate(scenarios []Scenario, parallel int) time.Duration {
	e := estimate{parallel: parallel, lanes: map[string]time.Duration{}}
	for _, sc := range scenarios {
		e.add(sc)
	}
	return e.time()
}

// estimate adds up what scenarios take. Those that share their servers cannot
// run side by side.
type estimate struct {
	parallel       int
	lanes          map[string]time.Duration // by servers
	total, longest time.Duration
}

func (e *estimate) add(sc Scenario) {
	backend, _, _ := strings.Cut(sc.Recipe, "/")
	lane := backend + "/" + sc.Topology
	took := (sc.Warmup + sc.Duration).D() + scenarioOverhead
	e.lanes[lane] += took
	e.total += took
	e.longest = max(e.longest, e.lanes[lane])
}

func (e *estimate) time() time.Duration {
	if e.total == 0 {
		return 0
	}
	return runOverhead + max(e.longest, e.total/time.Duration(max(1, e.parallel)))
}

func leftOut(f File, scenarios []Scenario, taken []bool) []LeftOut {
	var list []LeftOut
	for _, b := range f.Scenarios {
		out := LeftOut{Group: b.Name, Tells: b.Tells}
		kept, lost := map[string]bool{}, map[string]bool{}
		for i, sc := range scenarios {
			switch {
			case sc.Group != b.Name:
			case taken[i]:
				kept[sc.Recipe] = true
			default:
				out.Scenarios++
				lost[sc.Recipe] = true
			}
		}
		for recipe := range lost {
			if !kept[recipe] {
				out.Recipes = append(out.Recipes, recipe)
			}
		}
		slices.Sort(out.Recipes)
		out.Runs = len(kept)
		if out.Scenarios > 0 {
			list = append(list, out)
		}
	}
	return list
}
