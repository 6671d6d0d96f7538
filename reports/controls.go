package reports

import (
	"fmt"

	"github.com/lockbench/lockbench/internal/scenario"
)

// reference is the backend of the controls: a correct lock and deliberately broken
// ones, which test lockbench itself.
const reference = "reference"

// onlyControls reports whether all subjects are controls.
func (e *experiment) onlyControls() bool {
	for _, r := range e.all() {
		if r.Backend != reference {
			return false
		}
	}
	return true
}

// controlled sums up the runs of one control.
type controlled struct {
	runs      int
	caught    int // found to be broken
	undecided int
	broken    bool // it must be caught
}

// control counts how often a control was found broken or stuck. An unsafe verdict
// does not count if it is expected and the guarantee was kept.
func control(rs []result) controlled {
	c := controlled{runs: len(rs)}
	for _, r := range rs {
		e, s := r.Expect, r.Safety
		c.broken = c.broken || e.Promise == scenario.Broken || e.Liveness == scenario.Stuck || e.Verdict == scenario.Unsafe && e.Promise == ""
		switch {
		case s.Promise == scenario.Broken, s.Liveness == scenario.Stuck, s.Verdict == scenario.Unsafe && (c.broken || e.Verdict == scenario.Safe):
			c.caught++
		case s.Promise != scenario.Kept, s.Verdict == scenario.Undecided:
			c.undecided++
		}
	}
	return c
}

// controls: whether every broken lock was caught and no correct one accused.
func (b *builder) controls(es []*experiment) section {
	s := section{Title: "CONTROLS", Lead: "Controls test lockbench itself: a broken lock must be caught in every run, and the correct lock must never be accused."}
	t := table{Head: "control", Cols: []column{{Name: "load", Left: true}, {Name: "runs"}, {Name: "expected", Left: true}, {Name: "outcome", Left: true}, {Name: "unknown"}, {Group: "overlaps per run", Name: "median"}, {Group: "overlaps per run", Name: "min..max"}}}
	for _, e := range es {
		if e.uncontended() || len(e.faults) > 0 {
			continue // under a fault a correct lease can be unsafe too
		}
		for _, name := range e.rows {
			rs := done(e.of(name))
			if len(e.of(name)) == 0 || e.of(name)[0].Backend != reference {
				continue
			}
			if why := absent(e.of(name)); why != "" {
				t.Rows = append(t.Rows, row{Head: name, Span: why, Class: warn})
				continue
			}
			c := control(rs)
			r := row{Head: name}
			expected, out := "not accused", cell{Text: fmt.Sprintf("accused %d of %d", c.caught, c.runs), Class: good}
			if c.caught > 0 {
				out.Class = bad
			}
			if c.broken {
				expected, out = "caught", cell{Text: fmt.Sprintf("caught %d of %d", c.caught, c.runs), Class: good}
				if c.caught < c.runs {
					out.Class = bad
				}
			}
			o := statOf(rs, func(r result) (float64, bool) { return float64(r.Safety.Overlaps), true })
			r.Cells = []cell{{Text: clean(e.group)}, {Text: count(int64(c.runs))}, {Text: expected}, out, counter(int64(c.undecided), warn), {Text: number(o.med)}, {Text: count(int64(o.min)) + ".." + count(int64(o.max))}}
			t.Rows = append(t.Rows, r)
		}
	}
	s.Tables = nonEmpty(t)
	return s
}
