package history

import (
	"errors"
	"hash/crc32"
	"io"
)

// scanner walks over a piece of a file. It has one buffer of fixed size, even if
// the file declares larger lengths.
type scanner struct {
	r        io.ReaderAt
	pos, end int64  // in the file
	buf      []byte // of the capacity that is read at once
	at       int64  // where buf begins
	err      error  // a read failed: the piece ends there

	sums   bool   // take the checksum of what is read
	sum    uint32 // of the piece from its begin to summed
	summed int64
}

func newScanner(r io.ReaderAt, from, end int64, buf []byte) *scanner {
	return &scanner{r: r, pos: from, end: end, buf: buf[:0], at: from, summed: from}
}

// peek returns the next n bytes, fewer at the end. n is at most the buffer's
// capacity.
func (s *scanner) peek(n int) []byte {
	n = int(max(0, min(int64(n), s.end-s.pos)))
	off := s.pos - s.at
	if off < 0 || off+int64(n) > int64(len(s.buf)) {
		s.buf = s.buf[:max(0, min(int64(cap(s.buf)), s.end-s.pos))]
		got, err := s.r.ReadAt(s.buf, s.pos)
		if got < len(s.buf) {
			if !errors.Is(err, io.EOF) {
				s.err = err
			}
			s.end = s.pos + int64(got)
		}
		s.buf, s.at, off = s.buf[:got], s.pos, 0
		n = min(n, got)
		s.addSum()
	}
	return s.buf[off : off+int64(n)]
}

// addSum takes what was just read into the checksum, if that has come so far.
func (s *scanner) addSum() {
	if from := s.summed - s.at; s.sums && from >= 0 && from < int64(len(s.buf)) {
		s.sum = crc32.Update(s.sum, castagnoli, s.buf[from:])
		s.summed = s.at + int64(len(s.buf))
	}
}

// contentSum ends the walk, and returns the checksum of the piece as Merge takes
// it: it reads what was passed over.
func (s *scanner) contentSum() (uint32, error) {
	for s.pos = s.summed; s.pos < s.end; {
		s.skip(int64(len(s.all(1))))
	}
	return s.sum, s.err
}

// all returns what can be had without another read, at least n bytes unless
// the end is near.
func (s *scanner) all(n int) []byte {
	s.peek(n)
	return s.buf[s.pos-s.at:]
}

func (s *scanner) skip(n int64) { s.pos = min(s.pos+n, s.end) }

// zeroRun returns how many zeros follow, at most up to the end, without moving.
func (s *scanner) zeroRun(from int64) int64 {
	back := s.pos
	defer func() { s.pos = back }()
	s.pos = from
	for s.pos < s.end {
		b := s.all(1)
		if isZero(b) {
			s.skip(int64(len(b)))
			continue
		}
		for i := range b {
			if b[i] != 0 {
				return s.pos + int64(i) - from
			}
		}
	}
	return s.pos - from
}

// resync moves to the next sound record after the current place, at any
// offset. Without one it moves to where no whole slot fits any more.
func (s *scanner) resync() {
	s.skip(1)
	for s.end-s.pos >= slotSize {
		b := s.all(slotSize)
		if len(b) < slotSize {
			return // a read failed
		}
		i := 0
		for ; i+slotSize <= len(b); i++ {
			if marked(b[i:]) && invokeHalf(b[i:i+slotSize]) == halfSound {
				s.skip(int64(i))
				return
			}
		}
		s.skip(int64(i))
	}
}
