package reports

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (make it with go test ./reports -update)", err)
	}
	if got != string(want) {
		t.Errorf("%s has changed; look at it, and if it is right: go test ./reports -update\ngot:\n%s", name, got)
	}
}

func tableText(t *testing.T, d scenario.Document, o TextOptions) string {
	t.Helper()
	return renderText(build(run{doc: d}), o)
}

func TestTableGolden(t *testing.T) {
	golden(t, "quick.txt", tableText(t, quickDoc(), TextOptions{}))
	golden(t, "quick-80.txt", tableText(t, quickDoc(), TextOptions{Width: 80}))
	golden(t, "self-test.txt", tableText(t, selfTestDoc(), TextOptions{}))
}

// A footnote that all rows share stands once above the table, a column without a
// number is left out with its reason, and what is left is numbered anew.
func TestTidy(t *testing.T) {
	b := newBuilder(run{})
	busy, poll, few := b.note("Warning: machine busy"), b.note("the recipe polls"), b.note("few")
	empty := func() cell { return cell{Text: none, Marks: []int{poll}} }
	tb := table{Cols: []column{{Name: "p50"}, {Group: "woken", Name: "per release"}, {Name: "policy", Left: true}}, Rows: []row{
		{Head: "a", Marks: []int{busy}, Cells: []cell{{Text: "1"}, empty(), {Text: none}}},
		{Head: "b", Span: "missing"},
		{Head: "c", Marks: []int{busy}, Cells: []cell{{Text: "2", Marks: []int{few}}, empty(), {Text: none}}},
	}}
	sections := []section{{Tables: []table{tb}}}
	b.tidy(sections)
	got := sections[0].Tables[0]
	if len(got.Cols) != 2 || got.Cols[1].Name != "policy" || len(got.Rows[0].Cells) != 2 {
		t.Errorf("columns: %+v", got.Cols)
	}
	if !slices.Equal(got.Above, []string{"Warning: machine busy"}) || len(got.Rows[0].Marks) > 0 {
		t.Errorf("above: %q, marks %v", got.Above, got.Rows[0].Marks)
	}
	if want := []string{"Without a number, so not shown: woken per release (the recipe polls)."}; !slices.Equal(got.Below, want) {
		t.Errorf("below: %q, want %q", got.Below, want)
	}
	if !slices.Equal(b.notes, []string{"few"}) || !slices.Equal(got.Rows[2].Cells[0].Marks, []int{1}) {
		t.Errorf("notes: %q, mark %v", b.notes, got.Rows[2].Cells[0].Marks)
	}
}
