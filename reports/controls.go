package reports

import (
	"fmt"

	"github.com/lockbench/lockbench/internal/scenario"
)

// reference is the backend of the controls: locks of lockbench's own, right
// ones and wrong ones on purpose, that test the tester.
const reference = "reference"

// onlyControls tells that nothing real is compared here.
func (e *experiment) onlyControls() bool {
	for _, r := range e.all() {
		if r.Backend != reference {
			return false
		}
	}
	return true
}

// controlled is how the runs of one control came out.
type controlled struct {
	runs      int
	caught    int // accused of breaking its word
	undecided int
	broken    bool // it is expected to be caught
}

// control counts how often a control was accused of breaking its word, or was
// stuck. That holders outlive their lease is no accusation where it is expected.
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

// controls: was every broken lock caught, and no right one accused.
func (b *builder) controls(es []*experiment) section {
	s := section{Title: "CONTROLS", Lead: "Locks of lockbench's own, to test the tester: a broken one must be caught each time, the right one never accused."}
	t := table{Head: "control", Cols: []column{{Name: "load", Left: true}, {Name: "runs"}, {Name: "expected", Left: true}, {Name: "outcome", Left: true}, {Name: "undecided"}, {Group: "overlaps per run", Name: "median"}, {Group: "overlaps per run", Name: "min..max"}}}
	for _, e := range es {
		if e.uncontended() || len(e.faults) > 0 {
			continue // under a fault a right lease is unsafe too
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
			expected, out := "never accused", cell{Text: fmt.Sprintf("accused %d of %d", c.caught, c.runs), Class: good}
			if c.caught > 0 {
				out.Class = bad
			}
			if c.broken {
				expected, out = "caught", cell{Text: fmt.Sprintf("caught %d of %d", c.caught, c.runs), Class: good}
				if c.caught < c.runs {
					out.Class = bad
				}
			}
			u := cell{Text: count(int64(c.undecided))}
			if c.undecided > 0 {
				u.Class = warn
			}
			o := statOf(rs, func(r result) (float64, bool) { return float64(r.Safety.Overlaps), true })
			r.Cells = []cell{{Text: clean(e.group)}, {Text: count(int64(c.runs))}, {Text: expected}, out, u, {Text: number(o.med)}, {Text: count(int64(o.min)) + ".." + count(int64(o.max))}}
			t.Rows = append(t.Rows, r)
		}
	}
	s.Tables = nonEmpty(t)
	return s
}
