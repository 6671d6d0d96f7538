package chaos_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/chaos"
)

// What depends on an action stands in the action's file: outside this package no
// code compares its name with a literal.
func TestActionsAreKnownByNameNowhereElse(t *testing.T) {
	known := map[string]bool{}
	for _, a := range chaos.Actions() {
		known[a.About().Name] = true
	}
	for _, f := range chaos.Actions().Faults() {
		known[f.Name] = true
	}
	files := 0
	for _, dir := range []string{"cmd", "reports", "suites", "internal/scenario", "internal/measure", "internal/run"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, e := range compared(file) {
				literal, ok := e.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					continue
				}
				if name, err := strconv.Unquote(literal.Value); err == nil && known[name] {
					t.Errorf("%s compares with the action %q: ask the action itself, by its ActionInfo or an optional interface", set.Position(e.Pos()), name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 50 {
		t.Errorf("only %d files were read: the check checks nothing", files)
	}
}

// compared lists what a file's code compares with: operands of == and !=, cases,
// keys of maps, and what is looked for in a list.
func compared(file *ast.File) []ast.Expr {
	var list []ast.Expr
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.BinaryExpr:
			if x.Op == token.EQL || x.Op == token.NEQ {
				list = append(list, x.X, x.Y)
			}
		case *ast.CaseClause:
			list = append(list, x.List...)
		case *ast.CompositeLit:
			for _, e := range x.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok {
					list = append(list, pair.Key)
				}
			}
		case *ast.CallExpr:
			if f, ok := x.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(f.Sel.Name, "Contains") {
				for _, a := range x.Args {
					if among, ok := a.(*ast.CompositeLit); ok {
						list = append(list, among.Elts...)
					}
				}
			}
		}
		return true
	})
	return list
}
