package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

// noFault heads the column of the contended scenarios without faults.
const noFault = "no fault"

// resultsByFault has the results of locks by fault, noFault included. Controls
// are left out: they have a table of their own.
type resultsByFault struct {
	locks, faults []string
	runs          map[string]map[string][]result // by fault, by lock
	untried       map[string]map[string]bool     // by lock: applicable faults that the run left out
}

// groupByFault groups the contended results of a document.
func groupByFault(d scenario.Document) resultsByFault {
	m := resultsByFault{runs: map[string]map[string][]result{}, untried: map[string]map[string]bool{}}
	for _, e := range experiments(loads(d.Scenarios)) {
		name := noFault
		switch {
		case len(e.faults) > 0:
			name = faultName(e)
		case e.uncontended():
			continue
		}
		for _, r := range e.all() {
			if r.Backend == reference {
				continue
			}
			m.add(name, label(r))
			m.runs[name][label(r)] = append(m.runs[name][label(r)], r)
		}
	}
	for _, u := range d.NotTried {
		lock := label(result{Recipe: u.Recipe, Topology: u.Topology})
		for _, f := range u.Faults {
			f = clean(f)
			m.add(f, lock)
			if m.untried[lock] == nil {
				m.untried[lock] = map[string]bool{}
			}
			m.untried[lock][f] = len(m.runs[f][lock]) == 0
		}
	}
	if i := slices.Index(m.faults, noFault); i > 0 {
		m.faults = slices.Insert(slices.Delete(m.faults, i, i+1), 0, noFault)
	}
	return m
}

func (m *resultsByFault) add(fault, lock string) {
	if m.runs[fault] == nil {
		m.runs[fault] = map[string][]result{}
		m.faults = append(m.faults, fault)
	}
	if !slices.Contains(m.locks, lock) {
		m.locks = append(m.locks, lock)
	}
}

// tried are the faults that a lock met, and how many are applicable to it.
func (m resultsByFault) tried(lock string) (tried []string, applicable int) {
	for _, f := range m.faults {
		switch {
		case f == noFault:
		case len(done(m.runs[f][lock])) > 0:
			tried = append(tried, f)
			applicable++
		case len(m.runs[f][lock]) > 0 || m.untried[lock][f]:
			applicable++
		}
	}
	return tried, applicable
}

// common are the faults that every lock with a fault met: only these compare them.
func (m resultsByFault) common() []string {
	return slices.DeleteFunc(slices.Clone(m.faults), func(f string) bool {
		return f == noFault || slices.ContainsFunc(m.locks, func(lock string) bool {
			tried, _ := m.tried(lock)
			return len(tried) > 0 && !slices.Contains(tried, f)
		})
	})
}

// under are the results of each lock under some faults.
func (m resultsByFault) under(faults ...string) map[string][]result {
	out := map[string][]result{}
	for _, f := range faults {
		for lock, rs := range m.runs[f] {
			if rs = done(rs); len(rs) > 0 {
				out[lock] = append(out[lock], rs...)
			}
		}
	}
	return out
}

// matrix has the worst result of every lock under every fault.
func (b *builder) matrix(m resultsByFault) section {
	s := section{Title: "RESULTS", Lead: "Each lock under each fault: the worst result of all its runs. Each cell links to its scenario."}
	t := table{Head: "lock", Cols: []column{{Name: "verdict", Left: true}}, Filter: true}
	partial := slices.ContainsFunc(m.locks, func(lock string) bool {
		tried, applicable := m.tried(lock)
		return len(tried) < applicable
	})
	if partial {
		t.Cols = append(t.Cols, column{Group: "applicable faults", Name: "tried"})
	}
	for _, f := range m.faults {
		t.Cols = append(t.Cols, column{Name: f, Left: true})
	}
	for _, lock := range m.locks {
		var all []result
		cells := []cell{}
		for _, f := range m.faults {
			rs := m.runs[f][lock]
			all = append(all, done(rs)...)
			if m.untried[lock][f] {
				cells = append(cells, cell{Text: "not tried", Class: mute, Hover: "left out of this run, for example by its budget"})
				continue
			}
			cells = append(cells, b.faultCell(rs))
		}
		head := []cell{badge(all)}
		if tried, applicable := m.tried(lock); partial {
			head = append(head, cell{Text: fmt.Sprintf("%d of %d", len(tried), applicable)})
		}
		t.Rows = append(t.Rows, row{Head: lock, Cells: slices.Concat(head, cells)})
	}
	if len(t.Rows) > 0 {
		t.Below = []string{matrixKey(t)}
	}
	s.Tables = nonEmpty(t)
	return s
}

// badge is the verdict over some runs, and what else is bad.
func badge(rs []result) cell {
	var c cell
	for i, a := range answerKinds() {
		v, _ := a.worst(rs)
		switch {
		case i == 0:
			c = cell{Text: v, Class: a.class(v)}
		case v == a.Bad:
			c = cell{Text: c.Text + ", " + v, Class: bad}
		}
	}
	return c
}

// matrixKey explains the words that occur in a matrix.
func matrixKey(t table) string {
	used := ""
	for _, r := range t.Rows {
		for _, c := range r.Cells {
			used += c.Text + " "
		}
	}
	var out []string
	for _, w := range [][2]string{
		{"unsafe", "two clients held the same key at once, with the number of incidents and their total time, or the resource was damaged"},
		{"/", "in so many of its runs"}, {"broken", "the lock's replies contradict its guarantee"}, {"stuck", "a free key was not granted in time"},
		{"lost", "updates lost by the unfenced counter (in brackets: by the fenced counter)"}, {"missed", "the fault missed its target"},
		{"unknown", "not proven safe"}, {"not tried", "applicable, but left out of this run"}, {none, "not part of the suite"}, {"!", "not as expected"},
	} {
		if strings.Contains(used, w[0]) {
			out = append(out, w[0]+": "+w[1]+".")
		}
	}
	return strings.Join(out, " ")
}

// faultCell is the result of one lock under one fault.
func (b *builder) faultCell(rs []result) cell {
	ran := done(rs)
	switch {
	case len(rs) == 0:
		return cell{Text: none, Class: mute}
	case len(ran) == 0:
		return cell{Text: string(rs[0].Status), Class: warn, Marks: []int{b.note(absence(rs[0]))}, Link: b.anchor(rs[0])}
	}
	c := cell{Class: good}
	var words []string
	for i, a := range answerKinds() {
		v, n := a.worst(ran)
		switch class := a.class(v); {
		case class == good:
			continue
		case class == bad:
			c.Class = bad
		case i > 0 && len(words) > 0 && c.Class == warn:
			continue // one unknown is enough
		case c.Class == good:
			c.Class = warn
			if slices.ContainsFunc(ran, missed) {
				v = "missed"
			}
		}
		if n < len(ran) {
			v += fmt.Sprintf(" %d/%d", n, len(ran))
		}
		if i == 0 && overlaps(ran) > 0 {
			v += " " + incidents(ran)
		}
		words = append(words, v)
	}
	plainLost, _ := registers(ran, "plain")
	fencedLost, nf := registers(ran, "fenced")
	if plainLost.LostUpdates > 0 || fencedLost.LostUpdates > 0 {
		damage := "lost " + count(plainLost.LostUpdates)
		if nf > 0 {
			damage += fmt.Sprintf(" (%s)", count(fencedLost.LostUpdates))
		}
		words = append(words, damage)
	}
	c.Text = or(strings.Join(words, ", "), scenario.Safe)
	if asExpected(ran).Class == bad {
		c.Text += " !"
	}
	c.Link = b.anchor(worstOf(ran))
	hover := []string{plural(len(ran), "run", "runs")}
	if n := overlaps(ran); n > 0 {
		hover = append(hover, counted(n, "pair of holds", "pairs of holds"))
	}
	if why := causes(ran); why != "" {
		hover = append(hover, why)
	}
	c.Hover = strings.Join(hover, "; ")
	return c
}

// incidents are the overlaps of some runs: how many, and for how long in total.
func incidents(rs []result) string {
	var n, ns int64
	for _, r := range rs {
		n, ns = n+r.Safety.OverlapIncidents, ns+r.Safety.OverlapNS
	}
	return count(n) + "× " + nanos(float64(ns))
}

// missed reports whether a fault of a run missed its target.
func missed(r result) bool {
	return slices.ContainsFunc(r.Faults, func(f scenario.FaultResult) bool { return f.Status != "effective" })
}

// anchor is the place of a scenario in report.html.
func (b *builder) anchor(r result) string {
	return fmt.Sprintf("#s%d", 1+slices.IndexFunc(b.run.doc.Scenarios, func(x result) bool {
		return x.Name == r.Name && x.Group == r.Group && x.Recipe == r.Recipe && x.Clients == r.Clients && x.Repeat == r.Repeat
	}))
}
