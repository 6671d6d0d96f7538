package run

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
)

// Advice returns what to do about errors that have an obvious solution; empty for
// the others.
func Advice(err error) string {
	switch {
	// A worker's error comes through a pipe, as text.
	case errors.Is(err, syscall.ENOSPC), err != nil && strings.Contains(err.Error(), syscall.ENOSPC.Error()):
		return "the disk is full: free some space, or choose another folder with --out (servers keep their data under TMPDIR)"
	case errors.Is(err, ErrTemp):
		return "set TMPDIR to a folder that exists and that you may write to"
	case errors.Is(err, fs.ErrPermission):
		return "check who owns the folder, or choose another one with --out"
	case errors.Is(err, ErrFolder):
		return "choose another folder with --out"
	}
	return ""
}

// explain is an error's text with what to do about it.
func explain(err error) string {
	if hint := Advice(err); hint != "" {
		return err.Error() + "; " + hint
	}
	return err.Error()
}
