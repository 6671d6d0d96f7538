package reports

import (
	"flag"
	"os"
	"path/filepath"
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
