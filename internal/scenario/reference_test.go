package scenario

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/suite-file.md")

// reference is the page of the keys of suite files, from the tags of their fields.
func reference() string {
	var b strings.Builder
	b.WriteString(`# Keys of suite files

Made from the tags of the fields in [internal/scenario](../internal/scenario); a test checks that it is current
(` + "`go test ./internal/scenario -run TestReference -update`" + ` writes it). [The guide](guide.md) has examples. A list with one element
may be written as that element. Flags replace the keys of every block.
`)
	for _, s := range []struct {
		title, about string
		of           any
	}{
		{"Suite", "", &File{}},
		{"Block", "Each block runs every combination of its recipes, topologies and clients.", &Block{}},
		{"workload", "May be written as its kind alone: `workload: hot-key`.", &Load{}},
		{"faults", "One fault may be written as its kind alone: `faults: holder-pause`.", &FaultSpec{}},
		{"expect", "`any` expects nothing.", &Expect{}},
	} {
		fmt.Fprintf(&b, "\n## %s\n", s.title)
		if s.about != "" {
			fmt.Fprintf(&b, "\n%s\n", s.about)
		}
		b.WriteString("\n| key | flag | default | values | meaning |\n|---|---|---|---|---|\n")
		for _, f := range fieldsOf(reflect.ValueOf(s.of).Elem()) {
			name := ""
			if x := f.tag.Get("flag"); x != "" {
				name = "`--" + x + "`"
			}
			values := strings.ReplaceAll(cmp.Or(f.tag.Get("choices"), f.tag.Get("range")), " ", ", ")
			if values == "0s" {
				values = "0s or more"
			}
			var defaults []string // "1 keys=100": 1, and 100 for keys
			for _, x := range strings.Fields(f.tag.Get("default")) {
				if kind, v, special := strings.Cut(x, "="); special {
					x = v + " for " + kind
				}
				defaults = append(defaults, x)
			}
			if x := f.tag.Get("for"); x != "" {
				values = strings.TrimPrefix(values+"; workload "+x+" only", "; ")
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.name, name, strings.Join(defaults, ", "), values, f.tag.Get("help"))
		}
	}
	return b.String()
}

func TestReferenceOfSuiteFilesIsCurrent(t *testing.T) {
	const path = "../../docs/suite-file.md"
	want := reference()
	if strings.Contains(want, "|  |\n") {
		t.Error("a key has no help")
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("docs/suite-file.md is not current (%v): run go test ./internal/scenario -run TestReference -update", err)
	}
}
