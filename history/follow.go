package history

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Follower reads the files of a folder's clients while they are written. It
// hands out what is sound and waits for the rest; damage it leaves to Read,
// which looks at the whole when it is done. It is for one goroutine.
type Follower struct {
	dir   string
	files map[string]*followed
	buf   []byte
	doubt int64 // the worst of the clients' clocks
	holed bool  // a file was left to Read
}

// followed is one client's file.
type followed struct {
	file *os.File
	next int64   // offset of the next slot that is not begun
	open []int64 // offsets of calls that have not returned
	dead bool    // it makes no sense: left to Read
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
		file, err := os.Open(filepath.Join(f.dir, name))
		if err != nil {
			return fmt.Errorf("history: follow %s: %w", f.dir, err)
		}
		if n, err := file.ReadAt(f.buf[:headerSize], 0); err == nil || errors.Is(err, io.EOF) {
			if h, err := parseHeader(f.buf[:n]); err == nil {
				f.doubt = max(f.doubt, h.uncertainty)
			}
		}
		f.files[name] = &followed{file: file, next: headerSize}
	}
	for _, fd := range f.files {
		if err := f.poll(fd, visit); err != nil {
			return fmt.Errorf("history: follow %s: %w", fd.file.Name(), err)
		}
	}
	return nil
}

func (f *Follower) poll(fd *followed, visit func(*Call, bool)) error {
	if fd.dead {
		return nil
	}
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
				fd.dead, f.holed = true, true
				return nil
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
			return nil
		}
	}
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
	for _, fd := range f.files {
		errs = append(errs, fd.file.Close())
	}
	f.files = nil
	return errors.Join(errs...)
}
