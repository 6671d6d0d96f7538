package scenario

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// What a scenario takes besides its load (starting workers, merging and checking
// files, servers that recover), and a run (starting servers, writing the report).
// Measured on two cores, and rounded up.
const (
	scenarioOverhead = 3500 * time.Millisecond
	runOverhead      = 20 * time.Second
)

// Selection is the part of a suite that fits a budget.
type Selection struct {
	Picked   []Scenario // in the order of the suite
	LeftOut  []LeftOut  // in the order of the suite's blocks
	NotTried []NotTried // the faults that some recipes do not meet at all
	Estimate time.Duration
	Whole    time.Duration // what the whole suite would take
}

// LeftOut is the part of a block that was left out.
type LeftOut struct {
	Group     string
	Priority  int      // the block's; 0: none
	Scenarios int      // that are left out
	Recipes   []string // that do not run at all, sorted
	Runs      int      // recipes that do, if only with fewer repeats
}

// Within picks the scenarios of f with the highest priority that fit a time
// budget, if parallel of them run at once. Everything is picked once before
// anything a second time; then by Block.Priority; then each recipe in turn, so that
// none uses up the time of the others. It is a function of its arguments alone.
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
	sel.NotTried = notTried(scenarios, sel.Picked)
	return sel
}

// notTried lists the faults that a recipe meets in all scenarios and in none of
// those that are picked.
func notTried(all, picked []Scenario) []NotTried {
	type pair struct{ recipe, topology, faults string }
	seen := map[pair]bool{}
	of := func(sc Scenario) pair { return pair{sc.Recipe, sc.Topology, FaultNames(sc.Faults)} }
	for _, sc := range picked {
		seen[of(sc)] = true
	}
	var list []NotTried
	for _, sc := range all {
		p := of(sc)
		if p.faults == "" || seen[p] {
			continue
		}
		seen[p] = true
		i := slices.IndexFunc(list, func(n NotTried) bool { return n.Recipe == p.recipe && n.Topology == p.topology })
		if i < 0 {
			i, list = len(list), append(list, NotTried{Recipe: p.recipe, Topology: p.topology})
		}
		list[i].Faults = append(list[i].Faults, p.faults)
	}
	return list
}

// FaultNames is the name of all faults of a scenario together, each kind once.
func FaultNames(faults []Fault) string {
	var names []string
	for _, f := range faults {
		name := f.Kind
		if f.Step != "" {
			name += " at " + f.Step
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " + ")
}

// rank orders blocks: those without a priority come last.
func (b Block) rank() int {
	if b.Priority == 0 {
		return math.MaxInt
	}
	return b.Priority
}

// byTurns orders the indices of scenarios by priority, highest first.
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

// Estimate is about how long a run of scenarios takes, with parallel of them at
// once.
func Estimate(scenarios []Scenario, parallel int) time.Duration {
	e := estimate{parallel: parallel, lanes: map[string]time.Duration{}}
	for _, sc := range scenarios {
		e.add(sc)
	}
	return e.time()
}

// estimate adds up the times of scenarios. Those that share servers cannot run at
// once.
type estimate struct {
	parallel       int
	lanes          map[string]time.Duration // by servers
	total, longest time.Duration
	alone          time.Duration // of scenarios beside which none runs
}

func (e *estimate) add(sc Scenario) {
	backend, _, _ := strings.Cut(sc.Recipe, "/")
	lane := backend + "/" + sc.Topology
	took := (sc.Warmup + sc.Duration).D() + scenarioOverhead
	if sc.Alone {
		e.alone += took
		return
	}
	e.lanes[lane] += took
	e.total += took
	e.longest = max(e.longest, e.lanes[lane])
}

func (e *estimate) time() time.Duration {
	if e.total+e.alone == 0 {
		return 0
	}
	return runOverhead + e.alone + max(e.longest, e.total/time.Duration(max(1, e.parallel)))
}

func leftOut(f File, scenarios []Scenario, taken []bool) []LeftOut {
	var list []LeftOut
	for _, b := range f.Scenarios {
		out := LeftOut{Group: b.Name, Priority: b.Priority}
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
