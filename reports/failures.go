package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

// meantToFail reports whether every subject of an experiment is a real lock that
// is expected to fail there: its speed does not matter.
func (e *experiment) meantToFail() bool {
	rs := e.all()
	return len(rs) > 0 && !slices.ContainsFunc(rs, func(r result) bool { return len(failures(r.Expect)) == 0 || r.Backend == reference })
}

// failures are the bad answers that are expected.
func failures(e scenario.Expect) []string {
	var list []string
	for i, v := range []string{e.Verdict, e.Promise, e.Liveness} {
		if v == answerKinds[i].bad {
			list = append(list, v)
		}
	}
	return list
}

// manyFailures is the number of experiments with expected failures from which on
// they share a table.
const manyFailures = 4

// failed lists locks that are known to fail, and whether they did. If lockbench does
// not see such a failure, lockbench is broken.
func (b *builder) failed(es []*experiment) section {
	s := section{Title: "KNOWN FAILURES", Lead: "Each lock in the scenario that breaks it. If lockbench does not see the failure, lockbench itself is broken."}
	if matrixed(es) {
		return s
	}
	t := table{Head: "scenario", Cols: []column{{Name: "recipe", Left: true}, {Name: "expected", Left: true}, {Name: "seen", Left: true}, {Name: "cause", Left: true}}}
	n := 0
	for _, e := range es {
		fails := false
		for _, name := range e.rows {
			rs := done(e.of(name))
			if len(rs) == 0 || rs[0].Backend == reference {
				continue
			}
			must := "safe"
			if list := failures(rs[0].Expect); len(list) > 0 {
				must, fails = strings.Join(list, ", "), true
			}
			did := 0
			for _, r := range rs {
				if outcomeOf(r) == outcomeOK {
					did++
				}
			}
			c := cell{Text: fmt.Sprintf("%d of %d", did, len(rs)), Class: good}
			if did < len(rs) {
				c.Class = bad
			}
			t.Rows = append(t.Rows, row{Head: e.title(), Cells: []cell{{Text: name}, {Text: must}, c, {Text: or(causes(rs), none)}}})
		}
		if fails {
			n++
		}
	}
	if n >= manyFailures {
		s.Tables = nonEmpty(t)
	}
	return s
}

// causes lists the causes of the violations, the most frequent first.
func causes(rs []result) string {
	n := map[string]int64{}
	var names []string
	for _, r := range rs {
		for _, c := range r.Safety.Causes {
			if n[c.Cause] == 0 {
				names = append(names, c.Cause)
			}
			n[c.Cause] += c.Count + c.Breaches
		}
	}
	slices.SortStableFunc(names, func(x, y string) int { return int(n[y] - n[x]) })
	for i, name := range names {
		names[i] = clean(name)
	}
	return strings.Join(names, "; ")
}
