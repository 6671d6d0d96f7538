package measure

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/scenario"
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
		t.Errorf("lines.json is not what the source has; write it anew with: go test ./internal/measure -run TestCodeLines -update-lines\n%s", want)
	}
	if l := codeLines("redis/token"); l == nil || l.Recipe < 20 || l.Shared < 20 {
		t.Errorf("redis/token: %+v", l)
	}
	if l := codeLines("reference/mutex"); l != nil {
		t.Errorf("a control is no effort of anybody's, and yet it has %+v", l)
	}
}

// countLines counts what each recipe needs of its backend's package: what it
// needs alone, and what another recipe needs too. (Recipes of one type, which
// differ by a name alone, count as one.)
func countLines(t *testing.T) map[string]scenario.CodeLines {
	t.Helper()
	byBackend := map[string]map[string]string{} // backend: recipe: its type
	for _, r := range all.Recipes() {
		info := r.Info()
		if info.Backend == "reference" {
			continue
		}
		if byBackend[info.Backend] == nil {
			byBackend[info.Backend] = map[string]string{}
		}
		byBackend[info.Backend][info.ID] = reflect.TypeOf(r).Name()
	}
	counted := map[string]scenario.CodeLines{}
	for backend, recipes := range byBackend {
		p := parsePackage(t, filepath.Join("..", "..", "impls", backend))
		needs := map[string]map[line]bool{} // by type
		users := map[line]int{}
		for _, typ := range recipes {
			if needs[typ] != nil {
				continue
			}
			needs[typ] = p.needs(typ)
			for l := range needs[typ] {
				users[l]++
			}
		}
		for id, typ := range recipes {
			var n scenario.CodeLines
			for l := range needs[typ] {
				if users[l] > 1 {
					n.Shared++
				} else {
					n.Recipe++
				}
			}
			if n.Recipe+n.Shared < 30 {
				t.Errorf("%s: %d lines of code: its type %s was not found", id, n.Recipe+n.Shared, typ)
			}
			counted[id] = n
		}
	}
	return counted
}

type line struct {
	file   string
	number int
}

// source is a package by its declarations.
type source struct {
	files    *token.FileSet
	declared map[string][]ast.Node // by name; a type's methods stand under its name too
	code     map[line]bool         // lines that have code on them
	scope    *types.Scope
	uses     map[*ast.Ident]types.Object
}

func parsePackage(t *testing.T, dir string) *source {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	p := &source{files: token.NewFileSet(), declared: map[string][]ast.Node{}, code: map[line]bool{}, uses: map[*ast.Ident]types.Object{}}
	var parsed []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range codeOf(text) {
			p.code[line{path, n}] = true
		}
		file, err := parser.ParseFile(p.files, path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
		for _, d := range file.Decls {
			p.declare(d)
		}
	}
	// Only the package's own names matter; what it imports may stay unknown.
	conf := types.Config{Error: func(error) {}, Importer: strangers{}}
	pkg, _ := conf.Check(filepath.Base(dir), p.files, parsed, &types.Info{Uses: p.uses})
	p.scope = pkg.Scope()
	return p
}

// strangers imports packages as if they were empty.
type strangers struct{}

func (strangers) Import(path string) (*types.Package, error) {
	pkg := types.NewPackage(path, filepath.Base(path))
	pkg.MarkComplete()
	return pkg, nil
}

func (p *source) declare(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			name = receiver(d.Recv.List[0].Type)
		}
		p.declared[name] = append(p.declared[name], d)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				p.declared[spec.Name.Name] = append(p.declared[spec.Name.Name], spec)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					p.declared[name.Name] = append(p.declared[name.Name], spec)
				}
			}
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// needs lists the lines of all declarations that a type leads to: its methods,
// what they name, and so on.
func (p *source) needs(typ string) map[line]bool {
	lines, seen, open := map[line]bool{}, map[string]bool{typ: true}, []string{typ}
	for len(open) > 0 {
		name := open[0]
		open = open[1:]
		for _, node := range p.declared[name] {
			from, to := p.files.Position(node.Pos()), p.files.Position(node.End())
			for n := from.Line; n <= to.Line; n++ {
				if l := (line{from.Filename, n}); p.code[l] {
					lines[l] = true
				}
			}
			ast.Inspect(node, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				if used := p.uses[id]; used != nil && used.Parent() == p.scope && !seen[id.Name] {
					seen[id.Name], open = true, append(open, id.Name)
				}
				return true
			})
		}
	}
	return lines
}

// codeOf lists the lines of a file that have code on them.
func codeOf(src []byte) []int {
	file := token.NewFileSet().AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0) // comments are skipped
	var lines []int
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue // the scanner's own
		}
		// A literal may go over several lines; those within it that are blank
		// are its text.
		for i := range 1 + strings.Count(text, "\n") {
			if n := file.Line(pos) + i; len(lines) == 0 || lines[len(lines)-1] != n {
				lines = append(lines, n)
			}
		}
	}
}

func TestCodeOf(t *testing.T) {
	for src, want := range map[string]int{
		"package a\n": 1,
		"// A comment.\npackage a\n\n\nvar x = 1\n":     2,
		"package a\n/* one\ntwo */ var y = 2 // why\n}": 3,
		"package a\nvar s = `one\n\nthree`\n":           4,
	} {
		if got := len(codeOf([]byte(src))); got != want {
			t.Errorf("%q has %d lines of code, want %d", src, got, want)
		}
	}
}

// A type brings its methods, they bring what they name, and what nobody names
// counts for nobody.
func TestNeeds(t *testing.T) {
	dir := t.TempDir()
	const src = `package a

type lock struct{ base } // 1

// take is ours.
func (lock) take() { // 2
	stranger := 1 // 3
	help(stranger) // 4
} // 5

type base struct{} // 6

func (base) free() {} // 7

func help(int) {} // 8

func stranger() { _ = lock{} }

type other struct{}

func (other) help() {}
`
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := parsePackage(t, dir).needs("lock"); len(got) != 8 {
		t.Errorf("%d lines, want 8: %v", len(got), got)
	}
}
