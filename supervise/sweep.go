package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Swept is a dead run that was cleared away.
type Swept struct {
	ID     string
	Dir    string
	Killed []string // its processes that were still there: "redis (pid 4711)"
}

// String says it in a line.
func (s Swept) String() string {
	if len(s.Killed) == 0 {
		return "dead run " + s.ID + ": folder removed, nothing of it was running"
	}
	return "dead run " + s.ID + ": folder removed, killed " + strings.Join(s.Killed, ", ")
}

// Sweep clears away the runs under base (see Begin) whose process has died:
// it kills what they left running and removes their folders. Live runs are
// spared, and so is every process whose start time is not the journalled one.
// The error joins what could not be cleared; the list is right all the same.
func Sweep(base string) ([]Swept, error) {
	parent, err := parentDir(base)
	if err != nil {
		return nil, fmt.Errorf("sweep dead runs: %w", err)
	}
	gate, err := lockFile(filepath.Join(parent, gateName), true)
	if err != nil {
		return nil, fmt.Errorf("sweep dead runs: %w", err)
	}
	defer gate.Close()
	children, err := os.ReadDir(parent)
	if err != nil {
		return nil, fmt.Errorf("sweep dead runs: %w", err)
	}
	var swept []Swept
	var errs []error
	for _, c := range children {
		if !c.IsDir() || !strings.HasPrefix(c.Name(), idPrefix) {
			continue
		}
		s, err := sweepRun(filepath.Join(parent, c.Name()))
		switch {
		case errors.Is(err, errLive), errors.Is(err, os.ErrNotExist):
			// Alive, or its End was quicker than we.
		case err != nil:
			errs = append(errs, fmt.Errorf("sweep the dead run %s: %w", c.Name(), err))
		default:
			swept = append(swept, s)
		}
	}
	return swept, errors.Join(errs...)
}

func sweepRun(dir string) (Swept, error) {
	s := Swept{ID: filepath.Base(dir), Dir: dir}
	lock, err := lockFile(filepath.Join(dir, liveName), false)
	if err != nil {
		return s, err
	}
	defer lock.Close()
	entries, err := readJournal(dir)
	if err != nil {
		return s, err
	}
	for _, e := range entries {
		killed, err := killLeftOver(e)
		if err != nil {
			return s, err
		}
		if killed {
			s.Killed = append(s.Killed, fmt.Sprintf("%s (pid %d)", e.Name, e.PID))
		}
	}
	return s, os.RemoveAll(dir)
}

// killLeftOver ends a process of a dead run, with its group, if it is still
// the one that was journalled.
func killLeftOver(e entry) (bool, error) {
	if verify(e.PID, e.StartTime) != nil {
		return false, nil
	}
	if st, err := state(e.PID); err != nil || st == 'Z' {
		return false, nil // ended; somebody else has to wait for it
	}
	// It was made the leader of a group; where that was not so (it moved
	// itself), the process alone.
	if pgid, err := syscall.Getpgid(e.PID); err == nil && pgid == e.PID {
		_ = syscall.Kill(-e.PID, syscall.SIGKILL)
	}
	if err := syscall.Kill(e.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return false, fmt.Errorf("kill %s (pid %d): %w", e.Name, e.PID, err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if verify(e.PID, e.StartTime) != nil {
			return true, nil
		}
		if st, err := state(e.PID); err != nil || st == 'Z' {
			return true, nil
		}
		if time.Now().After(deadline) {
			return false, fmt.Errorf("%s (pid %d) does not end after SIGKILL", e.Name, e.PID)
		}
	}
}
