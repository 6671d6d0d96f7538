package reports

import (
	"slices"

	"github.com/lockbench/lockbench/internal/scenario"
)

// thresholds: the expected numbers and the measured ones.
func (b *builder) thresholds(es []*experiment) section {
	s := section{Title: "THRESHOLDS", Lead: "The numbers that the suite expects, and the measured ones."}
	for _, e := range es {
		t := table{Title: e.heading(), Head: "recipe", Cols: e.clientsColumn()}
		t.Cols = append(t.Cols, column{Name: "expected", Left: true}, column{Name: "measured"}, column{Name: "met", Left: true})
		many := len(e.counts) > 1
		for _, name := range e.rows {
			for _, n := range e.counts {
				for _, text := range expectedNumbers(e.runs[point{name, n}]) {
					r := row{Head: name}
					if many {
						r.Cells = append(r.Cells, cell{Text: count(int64(n))})
					}
					r.Cells = append(r.Cells, b.threshold(done(e.runs[point{name, n}]), text)...)
					t.Rows = append(t.Rows, r)
				}
			}
		}
		s.Tables = append(s.Tables, nonEmpty(t)...)
	}
	return s
}

// expectedNumbers lists the thresholds of some runs, each once.
func expectedNumbers(rs []result) []string {
	var list []string
	for _, r := range done(rs) {
		for _, text := range r.Expect.Thresholds {
			if !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	return list
}

// threshold shows a run that missed the threshold, else one that did not measure
// it, else the first.
func (b *builder) threshold(rs []result, text string) []cell {
	t, err := scenario.ParseThreshold(text)
	if err != nil {
		return []cell{{Text: clean(text)}, b.dash("invalid threshold: " + clean(err.Error())), {Text: "unknown", Class: warn}}
	}
	measured, met := cell{}, cell{Text: "yes", Class: good}
	for _, r := range rs {
		got, _ := t.Measured(r)
		switch ok, known := t.Check(r); {
		case known && !ok:
			return []cell{{Text: t.String()}, {Text: got, Class: bad}, {Text: "NO", Class: bad}}
		case !known:
			measured, met = b.dash(t.Metric+" was not measured"), cell{Text: "unknown", Class: warn}
		case measured.Text == "":
			measured.Text = got
		}
	}
	return []cell{{Text: t.String()}, measured, met}
}
