package reports

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

// fewForP99 is the number of acquires below which the 99th percentile is the
// largest value.
const fewForP99 = 100

const (
	noteDropped = "Arrivals were dropped: the rate is above the capacity of the lock. Response times then grow without bound and are not shown."
	noteFewP99  = "Fewer than 100 acquires: the p99 is the largest value."
)

// alike are the warnings in one footnote: they differ at most in their first
// number.
type alike struct {
	mark        int
	text        string // of the first of them
	least, most float64
	scenarios   map[string]bool
}

var digits = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)?`)

// warnings are the marks for the warnings of the runs. Warnings that differ only in
// their numbers share a footnote, which counts the scenarios. Few samples are
// marked at the 99th percentile instead (see percentile).
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

// String is the footnote: the warning, the range of its number, and in how many
// scenarios it occurs.
func (l *alike) String(all int) string {
	text := l.text
	if l.least < l.most {
		first := digits.FindStringIndex(text)
		rest := digits.FindAllString(text[first[1]:], -1)
		if len(rest) == 0 {
			text = fmt.Sprintf("%s%s to %s%s", text[:first[0]], bare(l.least), bare(l.most), text[first[1]:])
		} else {
			// Several numbers belong together: show one example.
			text = "for example, " + text
		}
	}
	if all > 1 {
		text += fmt.Sprintf(" (in %d of %d scenarios)", len(l.scenarios), all)
	}
	return text
}

func bare(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// percentile is a cell with a 99th percentile, marked if there are too few
// values.
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
