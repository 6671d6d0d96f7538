package history

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// wholeFile is a file that is being written.
type wholeFile struct {
	*bufio.Writer
	file *os.File
	at   int64 // bytes written so far
}

// Write appends p.
func (w *wholeFile) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.at += int64(n)
	return n, err
}

// ReadFrom hides that of bufio.Writer, which does not count.
func (w *wholeFile) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w}, r)
}

// replace writes p over what stands at an offset.
func (w *wholeFile) replace(p []byte, at int64) error {
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := w.file.WriteAt(p, at)
	return err
}

// writeWhole writes a file that appears whole or not at all, and replaces one of
// that name.
func writeWhole(path string, write func(*wholeFile) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".whole-*"+newSuffix)
	if err != nil {
		return err
	}
	w := &wholeFile{Writer: bufio.NewWriterSize(f, 256<<10), file: f}
	err = write(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Chmod(0o644)
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// openRegular opens a file to read it, and refuses what is none.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, st, nil
}
