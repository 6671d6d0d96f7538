package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// folder is the run's folder, marked live by a lock on one of its files.
type folder struct {
	path    string
	lock    *os.File
	discard bool // nothing ran, and nothing in it explains why
}

// ErrFolder: the results cannot be kept in the folder that the user chose.
var ErrFolder = errors.New("the folder for results cannot be used")

// ErrTemp: servers cannot keep their data in the folder that the user chose.
var ErrTemp = errors.New("the folder for temporary files cannot be used")

// unusable marks an error as that of a folder that the user chose. A full disk
// is not the user's choice.
func unusable(which, err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return fmt.Errorf("%w: %w", which, err)
}

// checkTemp looks at the folder in which servers will keep their data.
func checkTemp(dir string) error {
	if dir == "" {
		dir = os.TempDir()
	}
	st, err := os.Stat(dir)
	if err == nil && !st.IsDir() {
		err = fmt.Errorf("%s is not a folder", dir)
	}
	if err != nil {
		return unusable(ErrTemp, err)
	}
	return nil
}

// newFolder makes <out>/<time>-<suite>.
func newFolder(out, suite string, started time.Time) (*folder, error) {
	base := filepath.Join(out, started.Format("2006-01-02T150405")+"-"+suite)
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, unusable(ErrFolder, err)
	}
	path := base
	for i := 2; ; i++ {
		err := os.Mkdir(path, 0o755)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, unusable(ErrFolder, err)
		}
		path = fmt.Sprintf("%s-%d", base, i) // two runs within one second
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("make the run's folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(abs, scenario.FileLock), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the run's folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("lock the run's folder: %w", err)
	}
	fmt.Fprintf(lock, "pid %d\n", os.Getpid())
	return &folder{path: abs, lock: lock}, nil
}

// Live reports whether the run that writes the folder is still going on.
func Live(dir string) bool {
	f, err := os.Open(filepath.Join(dir, scenario.FileLock))
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

// close ends the run's claim to the folder.
func (f *folder) close() error {
	err := errors.Join(os.Remove(f.lock.Name()), f.lock.Close())
	if f.discard {
		err = errors.Join(err, os.RemoveAll(f.path))
	}
	return err
}

func (f *folder) scenario(name string) string {
	return filepath.Join(f.path, scenario.DirScenarios, name)
}

// writeJSON replaces a file as a whole, so that a reader never sees half of it.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		err = scenario.ReplaceFile(path, func(w io.Writer) error {
			_, err := w.Write(append(data, '\n'))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

// diskUse sums the blocks that a folder's files take.
func diskUse(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		sum += info.Size()
		return nil
	})
	return sum, err
}
