// Package printable makes text from elsewhere safe to print: a name in a foreign
// history or a suite could otherwise set the title of a terminal, overwrite a
// verdict, or reverse the order of the letters after it.
//
// Line and Name are for one text, where it enters an output. Writer is the last
// guard, before everything that a command prints.
package printable

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// longName is the number of letters that Name keeps.
const longName = 64

// Name makes s one line of at most 64 letters. Control characters, those that change
// the direction of a text, and invisible ones are shown quoted, as \u001b.
func Name(s string) string {
	s = Line(s)
	if utf8.RuneCountInString(s) <= longName {
		return s
	}
	return string([]rune(s)[:longName-1]) + "…"
}

// Line makes s one line, and quotes as Name does.
func Line(s string) string {
	if plain(s) && !strings.Contains(s, "\n") && !strings.Contains(s, "  ") && s == strings.TrimSpace(s) {
		return s
	}
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(s), " ") {
		quote(&b, r)
	}
	return b.String()
}

// plain reports whether all of s is ASCII without control characters, lines apart.
func plain[T string | []byte](s T) bool {
	for i := range len(s) {
		if (s[i] < ' ' || s[i] > '~') && s[i] != '\n' {
			return false
		}
	}
	return true
}

// hidden reports whether a character changes what is around it, or is not visible.
func hidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp)
}

// quote writes a hidden character in the form that JSON and EDN have too.
func quote(b interface{ WriteString(string) (int, error) }, r rune) {
	switch {
	case !hidden(r):
		_, _ = b.WriteString(string(r))
	case r > 0xffff:
		hi, lo := utf16.EncodeRune(r)
		_, _ = b.WriteString(fmt.Sprintf(`\u%04x\u%04x`, hi, lo))
	default:
		_, _ = b.WriteString(fmt.Sprintf(`\u%04x`, r))
	}
}

// Writer passes text on, and quotes hidden characters other than tabs, line ends and
// the sequences of lockbench's own colours.
type Writer struct {
	to   io.Writer
	rest []byte // the beginning of a letter
}

// NewWriter guards w.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Unwrap is the writer that w guards.
func (w *Writer) Unwrap() io.Writer { return w.to }

// own are the sequences that lockbench writes itself.
var own = [][]byte{[]byte("\t"), []byte("\n"), []byte("\x1b[0m"), []byte("\x1b[1m"), []byte("\x1b[2m"), []byte("\x1b[31m"), []byte("\x1b[32m"), []byte("\x1b[33m")}

// Write is io.Writer's.
func (w *Writer) Write(p []byte) (int, error) {
	if len(w.rest) == 0 && plain(p) {
		return w.to.Write(p)
	}
	text := slices.Concat(w.rest, p)
	w.rest = nil
	var out bytes.Buffer
next:
	for len(text) > 0 {
		for _, seq := range own {
			if bytes.HasPrefix(text, seq) {
				out.Write(seq)
				text = text[len(seq):]
				continue next
			}
		}
		if !utf8.FullRune(text) {
			w.rest = slices.Clone(text)
			break
		}
		r, n := utf8.DecodeRune(text)
		quote(&out, r)
		text = text[n:]
	}
	if _, err := w.to.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}
