package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck: an error in what only another platform compiles is found, and so is
// a missing package; what compiles there has none.
func TestCheck(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"sound":           {"a_darwin.go", "package a\n\nimport \"errors\"\n\nvar err error = errors.New(\"a\")\n", ""},
		"other platform":  {"a_linux.go", "package a\n\nvar n int = \"a\"\n", ""},
		"wrong type":      {"a_darwin.go", "package a\n\nfunc f() int { return \"a\" }\n", "a_darwin.go:3:"},
		"nothing defined": {"a_darwin.go", "package a\n\nimport \"os\"\n\nvar f = os.NoSuchName\n", "NoSuchName"},
		"no such package": {"a_darwin.go", "package a\n\nimport _ \"no/such\"\n", "no/such"},
		"syntax":          {"a_darwin.go", "package a\n\nfunc {\n", "a_darwin.go:3:"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"go.mod": "module a\n\ngo 1.26\n", "a.go": "package a\n", c.file: c.text} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := check(dir, "darwin/arm64")
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
