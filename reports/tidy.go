package reports

import (
	"slices"
	"strings"
)

// tidy drops the columns of numbers that have none, and writes a footnote that all
// rows or all cells of a column share once above the table. Then it numbers the
// footnotes that are left by their first mark.
func (b *builder) tidy(sections []section) {
	var order []int
	seen := map[int]int{} // the new number of an old mark
	number := func(marks []int) {
		for i, m := range marks {
			if seen[m] == 0 {
				order = append(order, m)
				seen[m] = len(order)
			}
			marks[i] = seen[m]
		}
		slices.Sort(marks)
	}
	for _, s := range sections {
		for i := range s.Tables {
			t := &s.Tables[i]
			b.dropEmpty(t)
			b.shareNotes(t)
			for r := range t.Rows {
				t.Rows[r].Marks = slices.Clone(t.Rows[r].Marks) // cells can share a list
				number(t.Rows[r].Marks)
				for c := range t.Rows[r].Cells {
					t.Rows[r].Cells[c].Marks = slices.Clone(t.Rows[r].Cells[c].Marks)
					number(t.Rows[r].Cells[c].Marks)
				}
			}
		}
	}
	var notes []string
	for _, m := range order {
		notes = append(notes, b.notes[m-1])
	}
	b.notes, b.marks = notes, map[string]int{}
}

// cells of a column, without rows that have one text instead.
func (t *table) cells(col int) []*cell {
	var out []*cell
	for r := range t.Rows {
		if t.Rows[r].Span == "" && col < len(t.Rows[r].Cells) {
			out = append(out, &t.Rows[r].Cells[col])
		}
	}
	return out
}

func (b *builder) dropEmpty(t *table) {
	var reasons []string
	dropped := map[string][]string{} // columns by reason
	for col := len(t.Cols) - 1; col >= 0; col-- {
		cells := t.cells(col)
		if t.Cols[col].Left || len(cells) == 0 || slices.ContainsFunc(cells, func(c *cell) bool { return c.Text != none }) {
			continue
		}
		var why []string
		for _, r := range t.Rows {
			if r.Span != "" || col >= len(r.Cells) {
				continue
			}
			for _, m := range r.Cells[col].Marks {
				if !slices.Contains(why, b.notes[m-1]) && !slices.Contains(r.Marks, m) {
					why = append(why, b.notes[m-1])
				}
			}
		}
		reason := strings.Join(why, "; ")
		if dropped[reason] == nil {
			reasons = append(reasons, reason)
		}
		dropped[reason] = append([]string{t.Cols[col].title()}, dropped[reason]...)
		t.Cols = slices.Delete(slices.Clone(t.Cols), col, col+1)
		for r := range t.Rows {
			if col < len(t.Rows[r].Cells) {
				t.Rows[r].Cells = slices.Delete(slices.Clone(t.Rows[r].Cells), col, col+1)
			}
		}
	}
	for _, reason := range slices.Backward(reasons) {
		t.Below = append(slices.Clone(t.Below), "Without a number, so not shown: "+list(dropped[reason])+" ("+or(reason, "see the footnotes")+").")
	}
}

func (c column) title() string { return strings.TrimSpace(c.Group + " " + c.Name) }

func (b *builder) shareNotes(t *table) {
	rows := slices.DeleteFunc(slices.Clone(t.Rows), func(r row) bool { return r.Span != "" })
	if len(rows) < 2 {
		return
	}
	for _, m := range slices.Clone(rows[0].Marks) {
		if slices.ContainsFunc(rows, func(r row) bool { return !slices.Contains(r.Marks, m) }) {
			continue
		}
		t.Above = append(t.Above, b.notes[m-1])
		for i := range t.Rows {
			t.Rows[i].Marks = without(t.Rows[i].Marks, m)
		}
	}
	for col := range t.Cols {
		cells := t.cells(col)
		if len(cells) < 2 {
			continue
		}
		for _, m := range slices.Clone(cells[0].Marks) {
			if slices.ContainsFunc(cells, func(c *cell) bool { return !slices.Contains(c.Marks, m) }) {
				continue
			}
			t.Above = append(t.Above, t.Cols[col].title()+": "+b.notes[m-1])
			for _, c := range cells {
				c.Marks = without(c.Marks, m)
			}
		}
	}
}
