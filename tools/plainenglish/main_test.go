package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	for _, test := range []struct {
		path, text string
		want       []string
	}{
		{"a.go", "package a\n\n// The server tells nobody.\n", []string{`a.go:3: "tells"`, `a.go:3: "nobody"`}},
		{"a.go", "package a\n\nfunc tellAll() {}\n", []string{`a.go:3: "tell"`}},
		{"a.go", "package a\n\nconst intelligent = `unfelted`\n", nil},
		{"a.go", "package a\n\nvar s = \"Nobody was there\"\n", []string{`a.go:3: "nobody"`}},
		{"a.go", "package a\n\n// All were killed at one\n// blow.\n", []string{`a.go:3: "at one blow"`}},
		{"suites/a.yaml", "# a comment that is as good\n#   as this\ntells: 3\n", []string{`suites/a.yaml:1: "as good as"`, `suites/a.yaml:3: "tells"`}},
		{"a.md", "plain reg.   fenced reg.\nsays-lost\n", []string{`a.md:1: "fenced reg."`, `a.md:1: "plain reg."`, `a.md:2: "says-lost"`}},
		{"chaos/a.go", "package a\n\nvar stands = 1 // it stands here\n", []string{`chaos/a.go:3: "stands"`}},
		{"history/a.go", "package a\n\nvar stands = 1\n", nil},
		{"a.go", "package a\n\n// two clients hold one lock\n", nil},
	} {
		found := newTable(rules).find(test.path, test.text)
		if len(found) != len(test.want) {
			t.Errorf("%q: found %v, want %v", test.text, found, test.want)
			continue
		}
		for _, want := range test.want {
			if !slices.ContainsFunc(found, func(f finding) bool { return strings.HasPrefix(f.String(), want+": use ") }) {
				t.Errorf("%q: found %v, want %s", test.text, found, want)
			}
		}
	}
}

func TestEveryRuleNamesAReplacement(t *testing.T) {
	for _, r := range rules {
		if (r.text == "") == (r.identifier == "") || r.instead == "" || r.text != strings.ToLower(r.text) {
			t.Errorf("a rule is incomplete: %+v", r)
		}
		text := r.text
		path := r.below + "a.md"
		if r.identifier != "" {
			text, path = "package a\nvar "+r.identifier+" = 1\n", r.below+"a.go"
		}
		if found := newTable([]rule{r}).find(path, text); len(found) != 1 {
			t.Errorf("rule %+v finds %v in %q", r, found, text)
		}
	}
}

// tree writes files below a new folder and returns it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestBaselineAndAllowList(t *testing.T) {
	root := tree(t, map[string]string{
		"old.md":                  "nobody and nobody\n",
		"quoted/theirs.md":        "whom\n",
		"bin/tool.go":             "nobody",
		"tools/plainenglish/x.md": "",
		allowedFile:               "# comment\nquoted/ whom a quotation\ntools/plainenglish/ * the table\n",
		baselineFile:              "old.md 2\n",
	})
	run := func(update bool) (string, error) {
		var out strings.Builder
		err := check(&out, root, "", false, update)
		return out.String(), err
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := run(false); err != nil || out != "" {
		t.Errorf("a tree that fits its baseline: %v\n%s", err, out)
	}
	write("old.md", "nobody, nobody,\nnobody\n")
	if out, err := run(false); err == nil || !strings.Contains(out, `old.md:2: "nobody": use`) {
		t.Errorf("one word more than the baseline permits: %v\n%s", err, out)
	}
	if _, err := run(true); err == nil {
		t.Error("-update raised the baseline")
	}
	write("old.md", "nobody\n")
	if _, err := run(true); err != nil {
		t.Fatal(err)
	}
	write("new.md", "nobody\n")
	if out, err := run(false); err == nil || !strings.Contains(out, "new.md:1") || strings.Contains(out, "old.md") {
		t.Errorf("a word in a file that the baseline does not name: %v\n%s", err, out)
	}
	write(allowedFile, "quoted/ whom\n")
	if _, err := run(false); err == nil {
		t.Error("an allowance without a reason was accepted")
	}
}
