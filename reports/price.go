package reports

import (
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/internal/scenario"
)

// price: the cost of each recipe in one line: requests per acquire with and without
// contention, clients woken per release, and lines of code.
func (b *builder) price(es []*experiment) table {
	alone, many := widest(es, scenario.Uncontended), widest(es, scenario.HotKey)
	if alone == nil || many == nil || !slices.ContainsFunc(slices.Concat(alone.all(), many.all()), priced) {
		return table{}
	}
	n, crowd := alone.counts[len(alone.counts)-1], many.counts[len(many.counts)-1]
	t := table{
		Title: fmt.Sprintf("each recipe: alone (%s, one key each) and contended (%s on one key)", plural(n, "client", "clients"), plural(crowd, "client", "clients")),
		Head:  "recipe", Cols: []column{{Group: "requests per acquire", Name: "alone"}, {Group: "requests per acquire", Name: "contended"},
			{Group: "woken", Name: "per release"}, {Group: "waiters", Name: "overtaken"}, {Group: "lines of code", Name: "own"}, {Group: "lines of code", Name: "shared"}},
	}
	for _, name := range slices.Concat(alone.rows, without(many.rows, alone.rows...)) {
		single, hot := alone.runs[point{name, n}], many.runs[point{name, crowd}]
		r := row{Head: name}
		if why := absent(slices.Concat(single, hot)); why != "" {
			r.Span, r.Class = why, warn
			t.Rows = append(t.Rows, r)
			continue
		}
		r.Cells = []cell{
			b.at(alone, name, n, "requests per acquire", mRequests()), b.at(many, name, crowd, "requests per acquire", mRequests()),
			b.at(many, name, crowd, "woken per release", mWoken()), b.at(many, name, crowd, "the order of grants", mInversions()),
		}
		r.Cells = append(r.Cells, b.lines(slices.Concat(single, hot))...)
		t.Rows = append(t.Rows, r)
	}
	t.Below = []string{"Lines of code without comments, blank lines and tests: own are those of the recipe's file, shared those of the files that all recipes of its backend share."}
	return t
}

// priced reports whether a result has more to show here than its requests.
func priced(r result) bool { return r.CodeLines != nil || r.WokenPerRelease != nil }

// widest is the experiment with the most subjects of a kind of load, without faults
// and in a closed loop.
func widest(es []*experiment, kind string) *experiment {
	var best *experiment
	for _, e := range es {
		if e.load.Kind == kind && len(e.faults) == 0 && !e.open() && !e.onlyControls() && (best == nil || len(e.rows) > len(best.rows)) {
			best = e
		}
	}
	return best
}

func without[T comparable](list []T, known ...T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return slices.Contains(known, x) })
}

func (b *builder) lines(rs []result) []cell {
	for _, r := range rs {
		if l := r.CodeLines; l != nil {
			return []cell{{Text: count(l.Recipe)}, {Text: count(l.Shared)}}
		}
	}
	return filled(b.dash("lines of code: "+why(done(rs), "code_lines")), 2)
}
