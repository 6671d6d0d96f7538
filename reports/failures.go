package reports

import (
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
	for _, a := range scenario.Answers() {
		if v := *a.Expected(&e); v == a.Bad {
			list = append(list, v)
		}
	}
	return list
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
