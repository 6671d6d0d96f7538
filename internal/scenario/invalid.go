package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// ErrInvalid is what every error of a wrong specification is, by errors.Is:
// the user's to mend, not ours.
var ErrInvalid = errors.New("invalid specification")

// Invalid lists what is wrong with a specification, in the order of the file.
// It is an ErrInvalid.
type Invalid struct {
	Problems []Problem
}

// Problem is one thing that is wrong.
type Problem struct {
	File         string // empty if the specification was not read from a file
	Line, Column int    // from 1; 0 if unknown
	Field        string // "scenarios[1].ttl"; or "ttl" where there is no file
	Message      string
	Hint         string // what to do about it
}

// Error puts each problem on a line of its own.
func (e *Invalid) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Is makes errors.Is(err, ErrInvalid) hold.
func (e *Invalid) Is(target error) bool { return target == ErrInvalid }

// String is "file:line:column: field: message (hint)", less what is unknown.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString("; " + p.Hint)
	}
	// Names come from the file as they are; one line must stay one line, and
	// harmless to a terminal.
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, b.String())
}

// sorted orders by place and drops repetitions: a wrong default is met again
// in every block that inherits it.
func sorted(problems []Problem) []Problem {
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	seen := map[Problem]bool{}
	return slices.DeleteFunc(problems, func(p Problem) bool {
		dup := seen[p]
		seen[p] = true
		return dup
	})
}

// position is a place in a file.
type position struct{ line, column int }
