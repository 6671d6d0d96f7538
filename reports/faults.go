package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

// manyFaults is from how many kinds of fault on a run is shown as a matrix:
// tables of its own for each would be too many to read.
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

// faultName names what an experiment's clients or servers suffered.
func faultName(e *experiment) string { return clean(strings.Join(e.faults, " + ")) }

// faults shows what every lock made of every fault, and what the faults were.
func (b *builder) faults(es []*experiment) section {
	if !matrixed(es) {
		return section{Title: "FAULTS", Lead: "What the faults did, and how long it took until somebody was granted a lock again.", Tables: nonEmpty(b.inflicted(es, true))}
	}
	s := section{Title: "FAULTS", Lead: "The worst answer of all runs. Unsafe: two clients held one key at once. Broken: the lock's own answers contradict its promise. Damage: a guarded resource lost updates, with tokens in brackets. Stuck: a free key was not granted in time. Unknown is not good."}
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

// maxSubjects is how many columns of a matrix stand side by side.
const maxSubjects = 4

// matrix is a backend's recipes against the faults that they met.
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
	// Those of one topology met the same faults, and stand together.
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
				line.Cells = append(line.Cells, b.fate(here[who]))
			}
			if any {
				t.Rows = append(t.Rows, line)
			}
		}
		tables = append(tables, t)
	}
	return tables
}

// topologyOf is the topology that a label names; "" for the usual one.
func topologyOf(label string) string {
	_, topology, _ := strings.Cut(label, " (")
	return strings.TrimSuffix(topology, ")")
}

// fate is what became of one lock under one fault.
func (b *builder) fate(rs []result) cell {
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

// infliction is what is to be told of one kind of fault over all runs.
type infliction struct {
	armed, hit       int
	mechanisms       []string
	outages, repairs []float64
	overlaps         int64
	breaches         int64
}

// inflicted tells of each kind of fault how often it hit, by what means, and
// for how long nobody was granted a lock: of all locks together, or of each
// apart.
func (b *builder) inflicted(es []*experiment, apart bool) table {
	t := table{Title: "what the faults did", Head: "fault", Cols: []column{
		{Group: "hit", Name: "of armed"}, {Group: "without a grant", Name: "median"}, {Group: "without a grant", Name: "max"}, {Group: "next grant", Name: "after it"},
		{Group: "in its runs", Name: "overlaps"}, {Group: "in its runs", Name: "breaches"}, {Name: "by", Left: true}}}
	all := map[string]*infliction{}
	var order []string
	for _, e := range es {
		for _, r := range done(e.all()) {
			told := map[string]bool{}
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
				if !told[name] { // a run's violations are told once of each kind
					told[name] = true
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
		t.Below = []string{"Without a grant: the longest time of each fault that hit, of the keys that it touched, until the first grant after its end. Next grant: median time from its end; what has no end ends when it is done. Overlaps and breaches are all that those runs had, whatever made them."}
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
		return b.dash("nobody was granted a lock again, or no fault of this kind hit")
	}
	slices.Sort(vs)
	return cell{Text: nanos(quantile(vs, share))}
}

// withstood sums up a matrix in sentences: who withstood what, who did not.
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
			out = append(out, fmt.Sprintf("%s: two clients held one lock under %s; %s%s.", name, list(x.unsafe), broke(x.broken), stopped(x.stuck)))
		case len(x.broken) > 0:
			out = append(out, fmt.Sprintf("%s: no two clients were seen to hold one lock, but %s%s.", name, broke(x.broken), stopped(x.stuck)))
		case len(x.stuck) > 0:
			out = append(out, fmt.Sprintf("%s: no two clients were seen to hold one lock, and its promise was kept%s.", name, stopped(x.stuck)))
		case len(x.open) == 0:
			never = append(never, fmt.Sprintf("%s (%s)", name, plural(met, "fault", "faults")))
		default:
			out = append(out, fmt.Sprintf("%s: undecided, which is not good news, under %s.", name, list(x.open)))
		}
	}
	if len(never) > 0 {
		out = append([]string{"Kept one holder at a time and its promise under every fault that it met: " + list(never) + "."}, out...)
	}
	return out
}

// broke says under which faults a lock broke its own word.
func broke(faults []string) string {
	if len(faults) == 0 {
		return "its promise was kept"
	}
	return "its promise was broken under " + list(faults)
}

// stopped says under which faults a free lock was not granted in time.
func stopped(faults []string) string {
	if len(faults) == 0 {
		return ""
	}
	return "; it was free and yet granted to nobody for too long under " + list(faults)
}
