package reports

import (
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

// headline is one of the first lines of a report: how many locks were safe. It is
// about safety alone; whether that was expected comes after it.
type headline struct {
	Text  string
	Class class
}

// manyHeadlines is the number of faults from which on they share a headline.
const manyHeadlines = 4

// headlines has a line for the contended scenarios without faults, and one for each
// fault, or for all faults together if there are many. Controls do not count.
func headlines(es []*experiment) []headline {
	calm := map[string][]result{}            // by lock
	hurt := map[string]map[string][]result{} // by fault, by lock
	anyFault := map[string][]result{}        // by lock
	var faults []string
	for _, e := range es {
		if e.uncontended() {
			continue
		}
		under := calm
		if name := faultName(e); len(e.faults) > 0 {
			if hurt[name] == nil {
				hurt[name] = map[string][]result{}
				faults = append(faults, name)
			}
			under = hurt[name]
		}
		for _, r := range done(e.all()) {
			if r.Backend == reference {
				continue
			}
			under[label(r)] = append(under[label(r)], r)
			if len(e.faults) > 0 {
				anyFault[label(r)] = append(anyFault[label(r)], r)
			}
		}
	}
	var out []headline
	if len(faults) < manyHeadlines {
		for _, name := range faults {
			out = append(out, headlineOf(hurt[name], "under "+name)...)
		}
	} else {
		out = append(out, headlineOf(anyFault, fmt.Sprintf("under at least one of %d faults", len(faults)))...)
	}
	return append(out, headlineOf(calm, "without faults")...)
}

// headlineOf counts the locks by their worst verdict; where is the condition. It is
// empty without locks.
func headlineOf(locks map[string][]result, where string) []headline {
	var unsafe, overlapping, unknown, stuck int
	for _, rs := range locks {
		switch v, _ := answerKinds[0].worst(rs); v {
		case scenario.Unsafe:
			unsafe++
			if overlaps(rs) > 0 {
				overlapping++
			}
		case scenario.Undecided:
			unknown++
		}
		if v, _ := answerKinds[2].worst(rs); v == scenario.Stuck {
			stuck++
		}
	}
	of := func(n int) string { return fmt.Sprintf("%d of %s", n, plural(len(locks), "lock", "locks")) }
	var parts []string
	class := warn
	if unsafe > 0 && unsafe == overlapping {
		parts = append(parts, of(unsafe)+" let two clients hold the lock at once")
	} else if unsafe > 0 {
		parts = append(parts, of(unsafe)+" unsafe")
	}
	if stuck > 0 {
		parts = append(parts, of(stuck)+" stuck: free but not granted to a waiting client")
	}
	if unsafe+stuck > 0 {
		class = bad
	}
	if unknown > 0 {
		parts = append(parts, of(unknown)+" not proven safe")
	}
	switch {
	case len(locks) == 0:
		return nil
	case len(parts) == 0:
		where = strings.Replace(where, "at least one of", "all", 1)
		return []headline{{upper(allOf(len(locks), "lock", "locks")) + " kept one holder at a time " + where + ".", good}}
	}
	return []headline{{upper(where) + ": " + strings.Join(parts, "; ") + ".", class}}
}

func overlaps(rs []result) int64 {
	var n int64
	for _, r := range rs {
		n += r.Safety.Overlaps
	}
	return n
}
