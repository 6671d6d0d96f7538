package reports

import (
	"fmt"
	"slices"
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

// headlines has a line for each fault, or for all faults together if there are many,
// and one for the scenarios without faults. It compares locks by the faults that all
// of them met.
func headlines(m resultsByFault) []headline {
	var out []headline
	faults := slices.DeleteFunc(slices.Clone(m.faults), func(f string) bool { return f == noFault || len(m.under(f)) == 0 })
	common := m.common()
	switch {
	case len(faults) < manyHeadlines:
		for _, f := range faults {
			out = append(out, headlineOf(m.under(f), "under "+f)...)
		}
	case len(common) == len(faults):
		out = headlineOf(m.under(faults...), fmt.Sprintf("under at least one of %d faults", len(faults)))
	default:
		out = headlineOf(m.under(faults...), "under at least one fault tried on it")
		if len(common) > 0 {
			out = append(out, headlineOf(m.under(common...), "under at least one of the faults that all of them met ("+shortList(common, manyHeadlines)+")")...)
		}
	}
	return append(out, headlineOf(m.under(noFault), "without faults")...)
}

// shortList joins the first words, and counts the others.
func shortList(words []string, most int) string {
	if len(words) > most {
		words = append(slices.Clone(words[:most]), fmt.Sprintf("%d more", len(words)-most))
	}
	return list(words)
}

// headlineOf counts the locks by their worst verdict; where is the condition. It is
// empty without locks.
func headlineOf(locks map[string][]result, where string) []headline {
	var unsafe, overlapping, unknown, stuck int
	for _, rs := range locks {
		switch worstVerdict(rs) {
		case scenario.Unsafe:
			unsafe++
			if overlaps(rs) > 0 {
				overlapping++
			}
		case scenario.Undecided:
			unknown++
		}
		if worstLiveness(rs) == scenario.Stuck {
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
		where = strings.NewReplacer("at least one of", "all", "at least one fault", "every fault").Replace(where)
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
