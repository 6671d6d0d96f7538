package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

// What the README tells people to type must be understood: its suite, and
// every run that needs nothing but what is built in.
func TestReadmeExamples(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(readme, -1) {
		text := block[1]
		if !bytes.HasPrefix(text, []byte("name:")) { // a part of a scenario
			text = append([]byte("name: part\nscenarios:\n  - name: part\n    recipes: redis/token\n    workload: {kind: hot-key, hold: 3500ms}\n"), text...)
		}
		file, err := scenario.ParseFile("README.md", text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Expand(catalogue()); err != nil {
			t.Error(err)
		}
		examples++
	}
	if examples < 2 {
		t.Errorf("the README has %d suites", examples)
	}
	ran := 0
	for line := range strings.Lines(string(readme)) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "  ")
		if !strings.HasPrefix(line, "lockbench run") || strings.ContainsAny(line, ".") || strings.Contains(line, "results/") {
			continue
		}
		ran++
		var stdout, stderr bytes.Buffer
		args := append(strings.Fields(line)[1:], "--dry-run")
		if code := execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != exitOK || stdout.Len() == 0 {
			t.Errorf("%s --dry-run ends with %d: %s", line, code, stderr.String())
		}
	}
	if ran < 4 {
		t.Errorf("only %d examples were found", ran)
	}
}
