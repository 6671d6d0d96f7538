package history

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// Calls are found on their lines, in whatever form a log gives them.
func TestLines(t *testing.T) {
	const a = `{"client":"a","kind":"try","key":"x","invoke":10,"return":20,"outcome":"ok"}`
	const b = `{"client":"b","kind":"try","key":"x","invoke":11,"return":21,"outcome":"ok"}`
	const aEnds = `{"client":"a","kind":"unlock","key":"x","invoke":30,"return":40,"outcome":"ok"}`
	asked := []CallID{{0, 0}, {0, 1}, {1, 0}, {1, 7}}
	for name, c := range map[string]struct {
		text string
		want map[CallID]int
	}{
		"lines":       {a + "\n\n" + b + "\n" + aEnds, map[CallID]int{{0, 0}: 1, {1, 0}: 3, {0, 1}: 4}},
		"array":       {"[" + a + "," + b + ",\n" + aEnds + "]", map[CallID]int{{0, 0}: 1, {1, 0}: 2, {0, 1}: 3}},
		"a mark":      {byteOrderMark + a + "\n" + b, map[CallID]int{{0, 0}: 1, {1, 0}: 2}},
		"edn":         {`{:type :invoke, :f :acquire, :process 0, :time 1}`, nil},
		"a line lost": {a + "\n?\n" + b, map[CallID]int{{0, 0}: 1}}, // b's may not be its first call
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Lines(path, asked)
		if err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v (%v)", name, got, c.want, err)
		}
	}
}

// What is read again has the numbers that the history has.
func TestLinesMatchTheHistory(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no logs in testdata (%v)", err)
	}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		h, err := ReadJSONL(f, path)
		f.Close()
		if err != nil {
			continue
		}
		var asked []CallID
		for _, c := range h.Calls {
			asked = append(asked, CallID{c.Client, c.Seq})
		}
		if got, err := Lines(path, asked); err != nil || len(got) != len(asked) {
			t.Errorf("%s: %d of %d calls have a line (%v)", path, len(got), len(asked), err)
		}
	}
}
