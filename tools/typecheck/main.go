// Typecheck reports the type errors that the packages of this module have on
// another platform. It stands for a build there: it finds what a compiler rejects,
// and generates no code, which is most of a build's time.
//
//	go run ./tools/typecheck darwin/arm64
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 || !strings.Contains(os.Args[1], "/") {
		fmt.Fprintln(os.Stderr, "usage: typecheck GOOS/GOARCH")
		os.Exit(2)
	}
	if err := check(".", os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "typecheck %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// listed is a package, as go list describes it.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct {
		GoVersion string
		Main      bool
	}
	Error *struct{ Err string }
}

// check checks the packages of the module in dir, and all that they import.
func check(dir, platform string) error {
	goos, goarch, _ := strings.Cut(platform, "/")
	list := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module,Error", "./...")
	list.Dir = dir
	list.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the packages: %w", err)
	}
	c := checker{files: token.NewFileSet(), sizes: types.SizesFor("gc", goarch), done: map[string]*types.Package{"unsafe": types.Unsafe}}
	if c.sizes == nil {
		return fmt.Errorf("unknown GOARCH %q", goarch)
	}
	// Every package comes after those that it imports.
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := in.Decode(&p); err == io.EOF {
			return errors.Join(c.errs...)
		} else if err != nil {
			return fmt.Errorf("read the list of packages: %w", err)
		}
		if p.ImportPath != "unsafe" {
			c.check(p)
		}
	}
}

// checker checks one package after another.
type checker struct {
	files *token.FileSet
	sizes types.Sizes
	done  map[string]*types.Package
	errs  []error
}

func (c *checker) fail(err error) { c.errs = append(c.errs, err) }

func (c *checker) check(p listed) {
	if p.Error != nil {
		c.fail(errors.New(p.Error.Err))
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			c.fail(err)
			continue
		}
		files = append(files, f)
	}
	ours := p.Module != nil && p.Module.Main
	conf := types.Config{Importer: imports{c, p.ImportMap}, Sizes: c.sizes, IgnoreFuncBodies: !ours, Error: c.fail}
	if p.Module != nil && p.Module.GoVersion != "" {
		conf.GoVersion = "go" + p.Module.GoVersion
	}
	c.done[p.ImportPath], _ = conf.Check(p.ImportPath, c.files, files, nil) // conf.Error has the errors
}

// imports finds what one package imports.
type imports struct {
	*checker
	vendored map[string]string
}

func (i imports) Import(path string) (*types.Package, error) {
	if p, ok := i.vendored[path]; ok {
		path = p
	}
	if p := i.done[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("the package %s was not listed", path)
}
