package history

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Follower reads streams while their Writers write them. It takes nothing from the
// Writers: it reads the files, in which a record counts once its checksum stands.
type Follower struct {
	streams []followed
	buf     []byte
	missed  int
}

// followed is how far one stream was read.
type followed struct {
	path string
	part int
	file *os.File // of the part; nil: not open yet
	next int64    // offset in it of the next record
}

// Follow follows the streams that Writers create at these paths, now or later.
func Follow(paths ...string) *Follower {
	f := &Follower{buf: make([]byte, 512*slotSize)}
	for _, path := range paths {
		f.streams = append(f.streams, followed{path: path})
	}
	return f
}

// Read visits the calls that have ended since the last Read, each stream's in
// their order. A call that is still open holds back those after it.
func (f *Follower) Read(visit func(*Call)) error {
	var errs []error
	for i := range f.streams {
		s := &f.streams[i]
		for {
			again, err := f.readPart(s, visit)
			if err != nil {
				errs = append(errs, fmt.Errorf("history: follow %s: %w", s.path, err))
			}
			if !again || err != nil {
				break
			}
		}
	}
	return errors.Join(errs...)
}

// Missed is how many records were not visited, because their part was compressed
// before it was read.
func (f *Follower) Missed() int { return f.missed }

// readPart reads what is new in the present part, and reports whether another one
// follows.
func (f *Follower) readPart(s *followed, visit func(*Call)) (bool, error) {
	if s.file == nil {
		path := s.path
		if s.part > 0 {
			path = partPath(s.path, s.part)
		}
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		s.file, s.next = file, headerSize
	}
	// The header first: when it says that another part follows, this one is whole.
	var p [headerSize]byte
	if _, err := s.file.ReadAt(p[:], 0); err != nil {
		return false, err
	}
	h, err := parseHeader(p[:])
	if err != nil {
		return false, nil // read while it was being written
	}
	if h.packed {
		f.missed += int((h.allocated - headerSize) / slotSize)
		return true, s.nextPart()
	}
	if waits, err := f.readRecords(s, visit); waits || err != nil {
		return false, err
	}
	if !h.continued {
		return false, nil
	}
	return true, s.nextPart()
}

// readRecords visits the records that are complete, and reports whether it came to
// one that is not.
func (f *Follower) readRecords(s *followed, visit func(*Call)) (waits bool, err error) {
	for {
		n, err := s.file.ReadAt(f.buf, s.next)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		for at := 0; at+slotSize <= n; at += slotSize {
			slot := f.buf[at : at+slotSize]
			if invokeHalf(slot) != halfSound || returnHalf(slot) != halfSound {
				return true, nil
			}
			c := call(slot, true)
			visit(&c)
			s.next += slotSize
		}
		if n < len(f.buf) {
			return false, nil
		}
	}
}

func (s *followed) nextPart() error {
	err := s.file.Close()
	s.file = nil
	s.part++
	return err
}

// Close closes the files.
func (f *Follower) Close() error {
	var errs []error
	for i := range f.streams {
		if file := f.streams[i].file; file != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(errs...)
}
