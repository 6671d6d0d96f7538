package main

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/term"

	"github.com/lockbench/lockbench/internal/printable"
	"github.com/lockbench/lockbench/reports"
)

func (a *app) printFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(data)
	return err
}

func (a *app) textOptions() reports.TextOptions {
	o := reports.TextOptions{Width: columns(a.stdout, 120)}
	o.Color = isTerminal(a.stdout) && os.Getenv("NO_COLOR") == ""
	return o
}

// columns is the width of the output: COLUMNS if it is set, else the width of the
// terminal, else a default.
func columns(w any, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if f, ok := file(w); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return otherwise
}

// height is the number of rows of a terminal, else a default.
func height(w any, otherwise int) int {
	if f, ok := file(w); ok {
		if _, n, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return otherwise
}

// file is the file that a guarded writer writes to.
func file(w any) (*os.File, bool) {
	if guard, ok := w.(*printable.Writer); ok {
		w = guard.Unwrap()
	}
	f, ok := w.(*os.File)
	return f, ok
}

func isTerminal(w any) bool {
	f, ok := file(w)
	return ok && term.IsTerminal(int(f.Fd()))
}

// shorten makes a path relative to the working folder if that is shorter.
func shorten(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(wd, path); err == nil && len(rel) < len(path) {
		return rel
	}
	return path
}
