package history

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// start is a place at which a stream of a merged file begins.
type start struct {
	at    int64 // -1: there is none
	frame frame
	bare  bool // the frame is damaged, and at is that of the stream's own header
}

// merged reads the streams of a merged file; false: it is none.
func (r *reader) merged(f io.ReaderAt, path string, size int64) bool {
	first := r.findStart(f, 0, size, false)
	if first.at < 0 {
		return false
	}
	if first.at > 0 {
		first = start{at: 0, bare: true}
		if r.begins(f, frameSize) {
			first.at = frameSize
		}
	}
	seen := make(map[uint32]bool)
	total, bare := uint32(0), 0
	for s := first; s.at >= 0; {
		sp := span{from: s.at, end: size, original: -1}
		if s.bare {
			bare++
			r.note(path, s.at, "the mark before a stream is damaged")
		} else {
			seen[s.frame.index] = true
			total = max(total, s.frame.total)
			sp = span{from: s.at + frameSize, end: s.at + frameSize + s.frame.stored, original: s.frame.original, content: s.frame.content}
		}
		next, rest := r.follow(f, path, &sp, s, size)
		r.stream(f, path, sp)
		if rest.end > 0 {
			bare++
			r.stream(f, path, rest)
		}
		s = next
	}
	if n := int64(total) - int64(len(seen)); n > int64(bare) {
		var gone []string
		for i := uint32(0); i < total && len(gone) < 10; i++ {
			if !seen[i] {
				gone = append(gone, fmt.Sprint(i))
			}
		}
		r.note(path, size, "%d of %d streams have no beginning, among them %s", n, total, strings.Join(gone, ", "))
	}
	return true
}

// follow finds the start after the stream sp, that of s. If none stands where
// it should, bytes were lost or came in, here or within the stream: follow
// looks for it from within the stream, cuts sp short where it begins, and
// returns what lies between the two, if something does.
func (r *reader) follow(f io.ReaderAt, path string, sp *span, s start, size int64) (next start, rest span) {
	if !s.bare {
		if sp.end == size {
			return start{at: -1}, span{}
		}
		if sp.end > sp.from && sp.end < size {
			if fr, ok := readFrame(f, sp.end); ok {
				return start{at: sp.end, frame: fr}, span{}
			}
		}
	}
	next = r.findStart(f, sp.from+1, size, true)
	end := size
	if next.at >= 0 {
		end = next.at
	}
	if s.bare {
		sp.end = end
		return next, span{}
	}
	r.note(path, min(max(sp.end, sp.from), size), "stream %d should have %d bytes, and the next one does not begin after them", s.frame.index, s.frame.stored)
	if sp.end < sp.from || sp.end >= end {
		sp.end, sp.original = end, -1
		return next, span{}
	}
	return next, span{from: sp.end, end: end, original: -1}
}

// begins reports whether a stream begins at the offset at.
func (r *reader) begins(f io.ReaderAt, at int64) bool {
	var p [len(streamMagic)]byte
	n, _ := f.ReadAt(p[:], at) // what cannot be read is no stream
	return string(p[:n]) == streamMagic
}

func readFrame(f io.ReaderAt, at int64) (frame, bool) {
	var p [frameSize]byte
	n, _ := f.ReadAt(p[:], at) // what cannot be read is no frame
	return parseFrame(p[:n])
}

// findStart returns the first sound frame at or after from, or the first sound
// header of a stream if bare ones count too.
func (r *reader) findStart(f io.ReaderAt, from, size int64, bare bool) start {
	const need = max(frameSize, headerSize)
	magic := []byte("LB") // of both
	sc := newScanner(f, from, size, r.buf)
	for sc.pos < sc.end {
		b := sc.all(need)
		for i := 0; ; i++ {
			j := bytes.Index(b[i:], magic)
			if j < 0 {
				break
			}
			i += j
			if fr, ok := parseFrame(b[i:]); ok {
				return start{at: sc.pos + int64(i), frame: fr}
			}
			if _, err := parseHeader(b[i:]); bare && err == nil {
				return start{at: sc.pos + int64(i), bare: true}
			}
		}
		if len(b) < need || sc.pos+int64(len(b)) >= sc.end {
			break
		}
		sc.skip(int64(len(b) - need + 1))
	}
	return start{at: -1}
}
