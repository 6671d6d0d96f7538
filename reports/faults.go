package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

// manyFaults is the number of kinds of fault from which on a run is shown as a
// matrix instead of a table for each fault.
const manyFaults = 4

// matrixed reports whether a run has that many faults.
func matrixed(es []*experiment) bool {
	seen := map[string]bool{}
	for _, e := range es {
		if len(e.faults) > 0 {
			seen[faultName(e)] = true
		}
	}
	return len(seen) >= manyFaults
}

// faultName is the name of all faults of an experiment.
func faultName(e *experiment) string { return clean(strings.Join(e.faults, " + ")) }

// faults shows what the faults did: for each lock, or for all together if there are
// many.
func (b *builder) faults(es []*experiment) section {
	return section{Title: "FAULTS", Lead: "What the faults did, and how long it took until a client was granted a lock again.", Tables: nonEmpty(b.inflicted(es, !matrixed(es)))}
}

// infliction sums up one kind of fault over all runs.
type infliction struct {
	armed, hit       int
	mechanisms       []string
	outages, repairs []float64
	incidents        int64
	breaches         int64
}

// inflicted has, for each kind of fault, how often it hit, by which mechanism, and
// the time without a grant: for all locks together, or for each lock (apart).
func (b *builder) inflicted(es []*experiment, apart bool) table {
	t := table{Title: "what the faults did", Head: "fault", Cols: []column{
		{Group: "hit", Name: "of armed"}, {Group: "without a grant", Name: "median"}, {Group: "without a grant", Name: "max"}, {Group: "next grant", Name: "after it"},
		{Group: "in its runs", Name: "incidents"}, {Group: "in its runs", Name: "breaches"}, {Name: "by", Left: true}}}
	all := map[string]*infliction{}
	var order []string
	for _, e := range es {
		for _, r := range done(e.all()) {
			counted := map[string]bool{}
			for _, f := range r.Faults {
				name := clean(f.Kind)
				if apart {
					name += ", " + label(r)
				}
				x := all[name]
				if x == nil {
					x = &infliction{}
					all[name], order = x, append(order, name)
				}
				x.add(f)
				if !counted[name] { // count the violations of a run once for each kind
					counted[name] = true
					x.incidents += r.Safety.OverlapIncidents
					x.breaches += r.Safety.Breaches
				}
			}
		}
	}
	for _, name := range order {
		x := all[name]
		hit := cell{Text: fmt.Sprintf("%d/%d", x.hit, x.armed), Class: good}
		if x.hit < x.armed {
			hit.Class = warn
		}
		t.Rows = append(t.Rows, row{Head: name, Cells: []cell{
			hit, b.among(x.outages, 0.5), b.among(x.outages, 1), b.among(x.repairs, 0.5),
			counter(x.incidents, bad), counter(x.breaches, bad), {Text: or(strings.Join(x.mechanisms, ", "), none)},
		}})
	}
	if len(t.Rows) > 0 {
		t.Below = []string{"Without a grant: for each fault that hit, the longest time without a grant of the affected keys, until the first grant after the fault. Next grant: median time from the end of the fault. Incidents (two clients held the same key) and breaches: all of these runs, whatever their cause."}
	}
	return t
}

func (x *infliction) add(f scenario.FaultResult) {
	x.armed++
	if f.Status != "effective" {
		return
	}
	x.hit++
	if how := clean(f.Mechanism); how != "" && !slices.Contains(x.mechanisms, how) {
		x.mechanisms = append(x.mechanisms, how)
	}
	if f.OutageNS > 0 {
		x.outages = append(x.outages, float64(f.OutageNS))
	}
	if f.RecoveryNS > 0 {
		x.repairs = append(x.repairs, float64(f.RecoveryNS))
	}
}

// among is the lowest of the values that is not below a share of them.
func (b *builder) among(vs []float64, share float64) cell {
	if len(vs) == 0 {
		return b.dash("no client was granted a lock again, or no fault of this kind hit")
	}
	slices.Sort(vs)
	return cell{Text: nanos(quantile(vs, share))}
}
