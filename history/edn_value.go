package history

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The part of EDN, the data notation of Clojure, that histories are written in.
// Values become Go's: nil, bool, int64, float64, string; a keyword, symbol or
// character an ednWord; a list, vector or set an []any; a map an ednMap. A tag
// is dropped, what it stands before is kept.

// ednWord is a keyword (with its colon), a symbol or a character.
type ednWord string

// ednMap is a map whose keys are words; entries with other keys are dropped.
type ednMap map[ednWord]any

// ednDepth bounds how deep values may nest: deeper is no history.
const ednDepth = 64

// errEDN marks what is no EDN; the reader goes on after it.
var errEDN = errors.New("not EDN")

type ednReader struct {
	in     *bufio.Reader
	line   int
	offset int64
}

func newEDNReader(r io.Reader) *ednReader {
	return &ednReader{in: bufio.NewReaderSize(r, maxLine), line: 1}
}

func (r *ednReader) byte() (byte, error) {
	b, err := r.in.ReadByte()
	if err != nil {
		return 0, err
	}
	r.offset++
	if b == '\n' {
		r.line++
	}
	return b, nil
}

func (r *ednReader) unread(b byte) {
	_ = r.in.UnreadByte() // it has just been read
	r.offset--
	if b == '\n' {
		r.line--
	}
}

// skipLine leaves the line that the reader is in.
func (r *ednReader) skipLine() {
	for {
		if b, err := r.byte(); err != nil || b == '\n' {
			return
		}
	}
}

// next returns the first byte that is neither space nor comment.
func (r *ednReader) next() (byte, error) {
	for {
		b, err := r.byte()
		switch {
		case err != nil:
			return 0, err
		case b == ';':
			r.skipLine()
		case !isEDNSpace(b):
			return b, nil
		}
	}
}

func isEDNSpace(b byte) bool { return b <= ' ' || b == ',' }

func isEDNEnd(b byte) bool { return isEDNSpace(b) || strings.IndexByte(`()[]{}";`, b) >= 0 }

// value reads the next value; io.EOF means that there is none.
func (r *ednReader) value(depth int) (any, error) {
	b, err := r.next()
	if err != nil {
		return nil, err
	}
	return r.from(b, depth)
}

// from reads the value that begins with b.
func (r *ednReader) from(b byte, depth int) (any, error) {
	if depth > ednDepth {
		return nil, fmt.Errorf("%w: nested deeper than %d", errEDN, ednDepth)
	}
	switch b {
	case '(':
		return r.list(')', depth)
	case '[':
		return r.list(']', depth)
	case '{':
		return r.pairs(depth)
	case '"':
		return r.text()
	case '#':
		return r.tagged(depth)
	case ')', ']', '}':
		return nil, fmt.Errorf("%w: a %q that closes nothing", errEDN, b)
	}
	word, err := r.word(b)
	if err != nil {
		return nil, err
	}
	return ednAtom(word)
}

// list reads values up to the closing bracket.
func (r *ednReader) list(closing byte, depth int) ([]any, error) {
	var list []any
	for {
		b, err := r.next()
		if err != nil {
			return nil, cut(err)
		}
		if b == closing {
			return list, nil
		}
		v, err := r.from(b, depth+1)
		if err != nil {
			return nil, cut(err)
		}
		if v != (dropped{}) {
			list = append(list, v)
		}
	}
}

func (r *ednReader) pairs(depth int) (ednMap, error) {
	list, err := r.list('}', depth)
	if err != nil {
		return nil, err
	}
	if len(list)%2 != 0 {
		return nil, fmt.Errorf("%w: a map with a key and no value", errEDN)
	}
	m := make(ednMap, len(list)/2)
	for i := 0; i < len(list); i += 2 {
		k, ok := list[i].(ednWord)
		if !ok {
			continue
		}
		if _, again := m[k]; again {
			return nil, fmt.Errorf("%w: a map with two values of %s", errEDN, k)
		}
		m[k] = list[i+1]
	}
	return m, nil
}

// dropped stands for a value that #_ took out.
type dropped struct{}

// tagged reads what follows a #.
func (r *ednReader) tagged(depth int) (any, error) {
	b, err := r.byte()
	if err != nil {
		return nil, cut(err)
	}
	switch b {
	case '{':
		return r.list('}', depth)
	case '_':
		if _, err := r.value(depth + 1); err != nil {
			return nil, cut(err)
		}
		return dropped{}, nil
	}
	if _, err := r.word(b); err != nil {
		return nil, err
	}
	v, err := r.value(depth + 1)
	return v, cut(err)
}

// text reads a string, whose quote has been read.
func (r *ednReader) text() (string, error) {
	var s strings.Builder
	for {
		b, err := r.byte()
		if err != nil {
			return "", cut(err)
		}
		if s.Len() > maxLine {
			return "", fmt.Errorf("%w: a string longer than %d bytes", errEDN, maxLine)
		}
		switch b {
		case '"':
			return s.String(), nil
		case '\\':
			if b, err = r.byte(); err != nil {
				return "", cut(err)
			}
			if i := strings.IndexByte("ntr", b); i >= 0 {
				b = "\n\t\r"[i]
			}
		}
		s.WriteByte(b)
	}
}

// word reads a word that begins with b.
func (r *ednReader) word(b byte) (string, error) {
	w := []byte{b}
	for {
		b, err := r.byte()
		if errors.Is(err, io.EOF) {
			return string(w), nil
		}
		if err != nil {
			return "", err
		}
		if isEDNEnd(b) && !(len(w) == 1 && w[0] == '\\') {
			r.unread(b)
			return string(w), nil
		}
		if w = append(w, b); len(w) > maxLine {
			return "", fmt.Errorf("%w: a word longer than %d bytes", errEDN, maxLine)
		}
	}
}

// ednAtom is the value that a word stands for.
func ednAtom(w string) (any, error) {
	switch w {
	case "nil":
		return nil, nil
	case "true", "false":
		return w == "true", nil
	}
	first := strings.TrimLeft(w, "+-")
	if first == "" || first[0] < '0' || first[0] > '9' {
		return ednWord(w), nil
	}
	if n, err := strconv.ParseInt(strings.TrimSuffix(w, "N"), 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(strings.TrimSuffix(w, "M"), 64)
	if err != nil {
		return nil, fmt.Errorf("%w: the number %q", errEDN, w)
	}
	return f, nil
}

// cut is err, where the end of the input is not expected.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: cut short: %w", errEDN, io.ErrUnexpectedEOF)
	}
	return err
}
