package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

// manyFaults is the number of kinds of fault from which on a run is shown as a
// matrix instead of a table for each fault.
const manyFaults = 4

// matrixed reports whether a run's faults are shown as a matrix.
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

// faults shows the result of every lock under every fault, and the faults.
func (b *builder) faults(es []*experiment) section {
	if !matrixed(es) {
		return section{Title: "FAULTS", Lead: "What the faults did, and how long it took until a client was granted a lock again.", Tables: nonEmpty(b.inflicted(es, true))}
	}
	s := section{Title: "FAULTS", Lead: "The worst result of all runs. Unsafe: two clients held the same key at once. Broken: the replies of the lock contradict its guarantee. Lost: updates lost by the unfenced counter (in brackets: by the fenced counter). Stuck: a free key was not granted in time. Unknown means not proven safe."}
	for _, backend := range backendsOf(es) {
		s.Tables = append(s.Tables, nonEmpty(b.matrix(es, backend)...)...)
	}
	s.Tables = append(s.Tables, nonEmpty(b.inflicted(es, false))...)
	return s
}

func backendsOf(es []*experiment) []string {
	var list []string
	for _, e := range es {
		if len(e.faults) == 0 {
			continue
		}
		for _, r := range e.all() {
			if !slices.Contains(list, r.Backend) {
				list = append(list, r.Backend)
			}
		}
	}
	return list
}

// maxSubjects is the number of columns of a matrix.
const maxSubjects = 4

// matrix has the recipes of a backend as columns and the faults as rows.
func (b *builder) matrix(es []*experiment, backend string) []table {
	var tables []table
	var subjects []string
	met := map[string]map[string][]result{} // by fault, by subject
	var order []string
	for _, e := range es {
		if len(e.faults) == 0 {
			continue
		}
		for _, r := range e.all() {
			if r.Backend != backend {
				continue
			}
			name, who := faultName(e), label(r)
			if met[name] == nil {
				met[name] = map[string][]result{}
				order = append(order, name)
			}
			if !slices.Contains(subjects, who) {
				subjects = append(subjects, who)
			}
			met[name][who] = append(met[name][who], r)
		}
	}
	// Group the recipes by topology: they have the same faults.
	slices.SortStableFunc(subjects, func(x, y string) int { return cmp.Compare(topologyOf(x), topologyOf(y)) })
	for some := range slices.Chunk(subjects, maxSubjects) {
		t := table{Title: clean(backend), Head: "fault"}
		for _, who := range some {
			name, _, _ := strings.Cut(strings.TrimPrefix(who, backend+"/"), " ")
			t.Cols = append(t.Cols, column{Group: name, Name: cmp.Or(topologyOf(who), "single"), Left: true})
		}
		for _, name := range order {
			line := row{Head: name}
			here, any := met[name], false
			for _, who := range some {
				any = any || len(here[who]) > 0
				line.Cells = append(line.Cells, b.verdictOf(here[who]))
			}
			if any {
				t.Rows = append(t.Rows, line)
			}
		}
		tables = append(tables, t)
	}
	return tables
}

// topologyOf is the topology in a label; "" for single.
func topologyOf(label string) string {
	_, topology, _ := strings.Cut(label, " (")
	return strings.TrimSuffix(topology, ")")
}

// verdictOf is the result of one lock under one fault.
func (b *builder) verdictOf(rs []result) cell {
	if len(rs) == 0 {
		return cell{Text: none, Class: mute, Hover: "not run"}
	}
	ran := done(rs)
	if len(ran) == 0 {
		return cell{Text: string(rs[0].Status), Class: warn, Marks: []int{b.note(absence(rs[0]))}}
	}
	var words []string
	worst := good
	hover := []string{plural(len(ran), "run", "runs")}
	for i, a := range answerKinds {
		v, n := a.worst(ran)
		switch c := a.class(v); c {
		case good:
			continue
		case bad:
			worst = bad
		default:
			if worst == good {
				worst = warn
			}
			if i > 0 && slices.Contains(words, "unknown") {
				continue
			}
		}
		if n < len(ran) {
			v += fmt.Sprintf(" %d/%d", n, len(ran))
		}
		words = append(words, v)
	}
	plainLost, _ := registers(ran, "plain")
	fencedLost, nf := registers(ran, "fenced")
	if plainLost.LostUpdates > 0 || fencedLost.LostUpdates > 0 {
		damage := count(plainLost.LostUpdates)
		if nf > 0 {
			damage += fmt.Sprintf(" (%s)", count(fencedLost.LostUpdates))
		}
		words = append(words, "lost "+damage)
	}
	if len(words) == 0 {
		words = []string{"safe"}
	}
	for _, r := range ran {
		for _, c := range r.Safety.Causes {
			hover = append(hover, fmt.Sprintf("%s: %d", clean(c.Cause), c.Count+c.Breaches))
		}
	}
	out := cell{Text: strings.Join(words, ", "), Class: worst, Hover: strings.Join(slices.Compact(hover), "; ")}
	if asExpected(ran).Class == bad {
		out.Text += " !"
		out.Marks = []int{b.note("Not as expected.")}
	}
	return out
}

// infliction sums up one kind of fault over all runs.
type infliction struct {
	armed, hit       int
	mechanisms       []string
	outages, repairs []float64
	overlaps         int64
	breaches         int64
}

// inflicted has, for each kind of fault, how often it hit, by which mechanism, and
// the time without a grant: for all locks together, or for each lock (apart).
func (b *builder) inflicted(es []*experiment, apart bool) table {
	t := table{Title: "what the faults did", Head: "fault", Cols: []column{
		{Group: "hit", Name: "of armed"}, {Group: "without a grant", Name: "median"}, {Group: "without a grant", Name: "max"}, {Group: "next grant", Name: "after it"},
		{Group: "in its runs", Name: "overlaps"}, {Group: "in its runs", Name: "breaches"}, {Name: "by", Left: true}}}
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
					x.overlaps += r.Safety.Overlaps
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
		cells := []cell{hit, b.middle(x.outages), b.longest(x.outages), b.middle(x.repairs)}
		for _, n := range []int64{x.overlaps, x.breaches} {
			c := cell{Text: count(n)}
			if n > 0 {
				c.Class = bad
			}
			cells = append(cells, c)
		}
		t.Rows = append(t.Rows, row{Head: name, Cells: append(cells, cell{Text: or(strings.Join(x.mechanisms, ", "), none)})})
	}
	if len(t.Rows) > 0 {
		t.Below = []string{"Without a grant: for each fault that hit, the longest time without a grant of the affected keys, until the first grant after the fault. Next grant: median time from the end of the fault. Overlaps and breaches: all of these runs, whatever their cause."}
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

func (b *builder) middle(vs []float64) cell  { return b.among(vs, 0.5) }
func (b *builder) longest(vs []float64) cell { return b.among(vs, 1) }

func (b *builder) among(vs []float64, share float64) cell {
	if len(vs) == 0 {
		return b.dash("no client was granted a lock again, or no fault of this kind hit")
	}
	slices.Sort(vs)
	return cell{Text: nanos(quantile(vs, share))}
}

// withstood sums up a matrix in sentences, one for all sound locks and one for each
// of the others.
func withstood(es []*experiment) []string {
	type record struct{ safe, unsafe, open, broken, stuck []string }
	records := map[string]*record{}
	var order []string
	for _, e := range es {
		if len(e.faults) == 0 {
			continue
		}
		for _, name := range e.rows {
			rs := done(e.of(name))
			if len(rs) == 0 || rs[0].Backend == reference {
				continue
			}
			x := records[name]
			if x == nil {
				x = &record{}
				records[name], order = x, append(order, name)
			}
			into := &x.open
			switch v, _ := answerKinds[0].worst(rs); v {
			case scenario.Safe:
				into = &x.safe
			case scenario.Unsafe:
				into = &x.unsafe
			}
			f := faultName(e)
			if !slices.Contains(*into, f) {
				*into = append(*into, f)
			}
			if v, _ := answerKinds[1].worst(rs); v == scenario.Broken && !slices.Contains(x.broken, f) {
				x.broken = append(x.broken, f)
			}
			if v, _ := answerKinds[2].worst(rs); v == scenario.Stuck && !slices.Contains(x.stuck, f) {
				x.stuck = append(x.stuck, f)
			}
		}
	}
	var never []string
	var out []string
	for _, name := range order {
		x := records[name]
		met := len(x.safe) + len(x.unsafe) + len(x.open)
		switch {
		case len(x.unsafe) > 0:
			out = append(out, fmt.Sprintf("%s: two clients held the lock at once under %s; %s%s.", name, list(x.unsafe), broke(x.broken), stopped(x.stuck)))
		case len(x.broken) > 0:
			out = append(out, fmt.Sprintf("%s: one holder at a time, but %s%s.", name, broke(x.broken), stopped(x.stuck)))
		case len(x.stuck) > 0:
			out = append(out, fmt.Sprintf("%s: one holder at a time and guarantee kept%s.", name, stopped(x.stuck)))
		case len(x.open) == 0:
			never = append(never, fmt.Sprintf("%s (%s)", name, plural(met, "fault", "faults")))
		default:
			out = append(out, fmt.Sprintf("%s: unknown, so not proven safe, under %s.", name, list(x.open)))
		}
	}
	if len(never) > 0 {
		out = append([]string{"One holder at a time and guarantee kept under every fault: " + list(never) + "."}, out...)
	}
	return out
}

// broke names the faults under which a lock broke its guarantee.
func broke(faults []string) string {
	if len(faults) == 0 {
		return "guarantee kept"
	}
	return "guarantee broken under " + list(faults)
}

// stopped names the faults under which a free lock was not granted in time.
func stopped(faults []string) string {
	if len(faults) == 0 {
		return ""
	}
	return "; it stayed free too long while clients waited under " + list(faults)
}
