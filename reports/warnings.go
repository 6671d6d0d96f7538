package reports

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

// fewForP99 is how many acquires a 99th percentile needs to be more than the
// largest value.
const fewForP99 = 100

const (
	noteDropped = "Arrivals were dropped: the offered rate is above what the lock can serve, so response times have no steady state and are not shown."
	noteFewP99  = "Fewer than 100 acquires: the p99 is the largest value."
)

// alike are the warnings behind one footnote: they differ in their first
// number at most.
type alike struct {
	mark        int
	text        string // of the first of them
	least, most float64
	scenarios   map[string]bool
}

var digits = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)?`)

// warnings marks what the runs warn of. Warnings that differ only in their
// numbers are one footnote, which counts the scenarios. What a table tells by
// itself, or does not depend on, gets no mark: few samples matter where a 99th
// percentile stands (see percentile), dropped arrivals have a column.
func (b *builder) warnings(rs []result) []int {
	var marks []int
	for _, r := range rs {
		for _, w := range r.Warnings {
			w = clean(w)
			var mark int
			switch {
			case strings.HasPrefix(w, "few samples: "):
				continue
			case r.Arrivals != nil && r.Arrivals.Dropped > 0 && strings.Contains(w, "arrivals were dropped"):
				mark = b.note(noteDropped)
			default:
				mark = b.warning(r, w)
			}
			if !slices.Contains(marks, mark) {
				marks = append(marks, mark)
			}
		}
	}
	return marks
}

func (b *builder) warning(r result, w string) int {
	k := digits.ReplaceAllLiteralString(w, "#")
	v, _ := strconv.ParseFloat(digits.FindString(w), 64)
	l := b.warned[k]
	if l == nil {
		l = &alike{text: w, least: v, most: v, scenarios: map[string]bool{}}
		l.mark = b.note("Warning: " + w)
		b.warned[k] = l
	}
	l.least, l.most = min(l.least, v), max(l.most, v)
	l.scenarios[r.Name] = true
	b.notes[l.mark-1] = "Warning: " + l.String(len(b.run.doc.Scenarios))
	return l.mark
}

// String is the footnote: what is warned of, between which bounds, and in how
// many of all scenarios.
func (l *alike) String(all int) string {
	text := l.text
	if l.least < l.most {
		first := digits.FindStringIndex(text)
		rest := digits.FindAllString(text[first[1]:], -1)
		if len(rest) == 0 {
			text = fmt.Sprintf("%s%s to %s%s", text[:first[0]], bare(l.least), bare(l.most), text[first[1]:])
		} else {
			// Several numbers belong together; only an example keeps them so.
			text = "for example, " + text
		}
	}
	if all > 1 {
		text += fmt.Sprintf(" (in %d of %d scenarios)", len(l.scenarios), all)
	}
	return text
}

func bare(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// percentile is a cell that shows a 99th percentile, marked where the values
// are too few for one.
func (b *builder) percentile(rs []result, what string, m metric, of func(result) *scenario.Latency) cell {
	return b.few(b.cell(rs, what, m), rs, of)
}

func (b *builder) few(c cell, rs []result, of func(result) *scenario.Latency) cell {
	for _, r := range done(rs) {
		if h := of(r); h != nil && h.Count > 0 && h.Count < fewForP99 {
			c.Marks = append(c.Marks, b.note(noteFewP99))
			break
		}
	}
	return c
}

func acquires(r result) *scenario.Latency  { return r.Acquire }
func responses(r result) *scenario.Latency { return r.Response }
