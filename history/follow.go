package history

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Follower reads the files of a folder's clients while they are written. It
// hands out what is sound and waits for the rest; damage it leaves to Read,
// which looks at the whole when it is done. It is for one goroutine.
type Follower struct {
	dir   string
	files map[string]*followed
	order []string // files that are not done, as they were met
	buf   []byte
	doubt int64 // the worst of the clients' clocks
	holed bool  // a file was left to Read
}

// followed is one client's file, or one part of it.
type followed struct {
	path  string
	file  io.ReaderAt
	close func() error
	next  int64   // offset of the next slot that is not begun
	open  []int64 // offsets of calls that have not returned
	done  bool    // nothing more comes; file is closed
}

// Follow begins to follow the client files in dir, those that are still to come
// included.
func Follow(dir string) *Follower {
	return &Follower{dir: dir, files: map[string]*followed{}, buf: make([]byte, 64*slotSize)}
}

// Poll visits what was recorded since the last Poll: each call when it has
// begun, its outcome still Open, and again when it has returned. What is
// recorded before Poll begins is visited by it; what comes meanwhile may be.
// The call is the visitor's only until it returns.
func (f *Follower) Poll(visit func(c *Call, returned bool)) error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return fmt.Errorf("history: follow %s: %w", f.dir, err)
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasPrefix(name, ".") || strings.HasSuffix(name, newSuffix) || f.files[name] != nil {
			continue
		}
		fd, err := f.follow(filepath.Join(f.dir, name))
		if err != nil {
			return fmt.Errorf("history: follow %s: %w", f.dir, err)
		}
		f.files[name] = fd
		f.order = append(f.order, name)
	}
	for _, name := range f.order {
		fd := f.files[name]
		if fd.done {
			continue
		}
		if err := f.poll(fd, visit); err != nil {
			return fmt.Errorf("history: follow %s: %w", fd.path, err)
		}
	}
	f.order = slices.DeleteFunc(f.order, func(name string) bool { return f.files[name].done })
	return nil
}

// follow opens a file. One that was compressed before it was met reads as it
// was.
func (f *Follower) follow(path string) (*followed, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	fd := &followed{path: path, file: file, close: file.Close, next: headerSize}
	h, ok := f.header(file)
	if !ok {
		return fd, nil
	}
	f.doubt = max(f.doubt, h.uncertainty)
	if !h.packed {
		return fd, nil
	}
	st, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	z, err := newDecoder()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	s := newStrip(file, z)
	s.beginAt(span{end: st.Size()})
	fd.file = s
	return fd, nil
}

func (f *Follower) header(r io.ReaderAt) (header, bool) {
	n, _ := r.ReadAt(f.buf[:headerSize], 0) // what cannot be read is no header
	h, err := parseHeader(f.buf[:n])
	return h, err == nil
}

func (f *Follower) poll(fd *followed, visit func(*Call, bool)) error {
	still := fd.open[:0]
	for _, at := range fd.open {
		s := f.buf[:slotSize]
		if _, err := fd.file.ReadAt(s, at); err != nil {
			return err
		}
		if returnHalf(s) != halfSound {
			still = append(still, at)
			continue
		}
		c := call(s, true)
		visit(&c, true)
	}
	fd.open = still
	for {
		n, err := fd.file.ReadAt(f.buf, fd.next)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for s := f.buf[:n]; len(s) >= slotSize; s = s[slotSize:] {
			switch invokeHalf(s) {
			case halfSound:
			case halfBad:
				f.holed = true
				return f.leave(fd)
			default:
				return nil // not yet begun, or in the middle of it
			}
			returned := returnHalf(s) == halfSound
			if !returned {
				fd.open = append(fd.open, fd.next)
			}
			c := call(s, returned)
			visit(&c, returned)
			fd.next += slotSize
		}
		if n < len(f.buf) {
			// A part that is full has no room for another record.
			if h, ok := f.header(fd.file); ok && h.continued && h.allocated == fd.next && len(fd.open) == 0 {
				return f.leave(fd)
			}
			return nil
		}
	}
}

// leave closes a file of which nothing more is to come.
func (f *Follower) leave(fd *followed) error {
	fd.done = true
	return fd.close()
}

// Whole reports whether all that was visited is all that was recorded: no file was
// left to Read since its next record makes no sense.
func (f *Follower) Whole() bool { return !f.holed }

// Uncertainty is by how many nanoseconds the stamps of a client that was met so far
// may be off, at the worst.
func (f *Follower) Uncertainty() int64 { return f.doubt }

// Close closes the files.
func (f *Follower) Close() error {
	var errs []error
	for _, name := range f.order {
		errs = append(errs, f.files[name].close())
	}
	f.files, f.order = nil, nil
	return errors.Join(errs...)
}
