package impls

import (
	"bufio"
	"bytes"
	"embed"
	"path"
	"strings"
)

// The recipes' sources, so that a report can say how much code each one is.
//
//go:embed */*.go
var sources embed.FS

// CodeLines counts the lines of code of a recipe ("redis/token"). Its own lines
// are those of its file, which has the recipe's name without hyphens
// (token.go); variants of a recipe may share a file (for-update-no-index is in
// forupdate.go). The shared lines are those of the files in its backend's
// package that belong to no recipe. Blank lines, comments and tests are not
// counted. Both are 0 for a recipe that lockbench does not have, and for the
// controls.
func CodeLines(id string) (own, shared int64) {
	backend, name, _ := strings.Cut(id, "/")
	name = strings.ReplaceAll(name, "-", "")
	files, err := sources.ReadDir(backend)
	if err != nil || backend == "reference" {
		return 0, 0
	}
	recipe := ""
	for _, f := range files {
		text, err := sources.ReadFile(path.Join(backend, f.Name()))
		if err != nil || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		if !bytes.Contains(text, []byte(") Info() impls.Info")) {
			shared += countCode(text)
			continue
		}
		base := strings.ReplaceAll(strings.TrimSuffix(f.Name(), ".go"), "_", "")
		if strings.HasPrefix(name, base) && len(base) > len(recipe) {
			recipe, own = base, countCode(text)
		}
	}
	if own == 0 {
		return 0, 0
	}
	return own, shared
}

// countCode counts the lines that are neither blank nor a comment.
func countCode(text []byte) int64 {
	var n int64
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}
