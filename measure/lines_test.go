package measure

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/impls/all"
)

var updateLines = flag.Bool("update-lines", false, "write lines.json anew")

// The counts in the report are those of the source.
func TestCodeLines(t *testing.T) {
	want, err := json.MarshalIndent(countLines(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *updateLines {
		if err := os.WriteFile("lines.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want, countedLines) {
		t.Errorf("lines.json is not what the source has; write it anew with: go test ./measure -run TestCodeLines -update-lines\n%s", want)
	}
	if l := codeLines("redis/token"); l == nil || l.Recipe < 20 || l.Shared < 20 {
		t.Errorf("redis/token: %+v", l)
	}
	if l := codeLines("reference/mutex"); l != nil {
		t.Errorf("a control is no effort of anybody's, and yet it has %+v", l)
	}
}

// shortNames are the names of files that leave out a part of their recipe's.
var shortNames = map[string]string{"mysql/insert-reentrant-count": "insertcount"}

// countLines gives each file of a backend to the recipe that it is named for:
// lease-row has leaserow.go, and leaserow_*.go if there are any. The others are
// shared.
func countLines(t *testing.T) lineCounts {
	t.Helper()
	c := lineCounts{Recipes: map[string]int64{}, Shared: map[string]int64{}}
	recipes := map[string]string{}
	for _, r := range all.Recipes() {
		if info := r.Info(); info.Backend != "reference" {
			_, name, _ := strings.Cut(info.ID, "/")
			file := cmp.Or(shortNames[info.ID], strings.ReplaceAll(name, "-", ""))
			recipes[filepath.Join(info.Backend, file)] = info.ID
			c.Recipes[info.ID], c.Shared[info.Backend] = 0, 0
		}
	}
	for backend := range c.Shared {
		files, err := filepath.Glob(filepath.Join("..", "impls", backend, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			base := strings.TrimSuffix(filepath.Base(file), ".go")
			if strings.HasSuffix(base, "_test") {
				continue
			}
			name, _, _ := strings.Cut(base, "_")
			n := linesOf(t, file)
			if id, ok := recipes[filepath.Join(backend, name)]; ok {
				c.Recipes[id] += n
			} else {
				c.Shared[backend] += n
			}
		}
	}
	for id, n := range c.Recipes {
		if n == 0 {
			t.Errorf("no file is named for %s", id)
		}
	}
	return c
}

// linesOf counts the lines of a file that have code on them.
func linesOf(t *testing.T, path string) int64 {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return countCode(src)
}

func countCode(src []byte) int64 {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0) // comments are skipped
	lines := map[int]bool{}
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return int64(len(lines))
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue // the scanner's own
		}
		// A literal may go over several lines; those within it that are blank
		// are its text.
		for i := range 1 + strings.Count(text, "\n") {
			lines[file.Line(pos)+i] = true
		}
	}
}

func TestCountCode(t *testing.T) {
	for src, want := range map[string]int64{
		"package a\n":                               1,
		"// A comment.\npackage a\n\n\nvar x = 1\n": 2,
		"package a\n/* one\ntwo */ var y = 2 // why\n}": 3,
		"package a\nvar s = `one\n\nthree`\n":           4,
	} {
		if got := countCode([]byte(src)); got != want {
			t.Errorf("%q has %d lines of code, want %d", src, got, want)
		}
	}
}
