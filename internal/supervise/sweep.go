package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// killLimit is how long a process may take to end after SIGKILL. It cannot
// ignore SIGKILL, but a process that waits in the kernel (for a dead disk) ends
// late.
const killLimit = 10 * time.Second

// Swept is a dead run that was removed.
type Swept struct {
	ID     string
	Dir    string
	Faults []string // the unhealed faults, the last first: "fault holder-pause-1 was still in force: ..."
	Killed []string // the processes that were still running: "redis (pid 4711)"
}

// String describes it in one line.
func (s Swept) String() string {
	text := "dead run " + s.ID + ": "
	for _, f := range s.Faults {
		text += f + "; "
	}
	text += "folder removed, "
	if len(s.Killed) == 0 {
		return text + "no process was running"
	}
	return text + "killed " + strings.Join(s.Killed, ", ")
}

// Sweep removes the runs under base (see Begin) whose process has died: it
// kills their remaining processes and removes their folders. It skips live
// runs, and every process whose start time differs from the journal. The error
// joins the failures; the list is correct nevertheless.
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
			// Live, or ended meanwhile.
		case err != nil:
			errs = append(errs, fmt.Errorf("sweep the dead run %s: %w", c.Name(), err))
		default:
			swept = append(swept, s)
		}
	}
	return swept, errors.Join(errs...)
}

func sweepRun(dir string) (Swept, error) {
	lock, err := lockFile(filepath.Join(dir, liveName), false)
	if err != nil {
		return Swept{}, err
	}
	defer lock.Close()
	s, err := endLeftOvers(dir)
	if err != nil {
		return s, err
	}
	return s, os.RemoveAll(dir)
}

// endLeftOvers kills the processes in a dead run's journal, the last first. It
// does not continue processes that a fault has stopped, since they would run
// unsupervised: it kills them as they are.
func endLeftOvers(dir string) (Swept, error) {
	s := Swept{ID: filepath.Base(dir), Dir: dir}
	processes, faults, err := readJournal(dir)
	if err != nil {
		return s, err
	}
	for _, f := range faults {
		s.Faults = append(s.Faults, f.inForce())
	}
	var dying []entry
	for _, e := range processes {
		killed, err := killLeftOver(e)
		if err != nil {
			return s, err
		}
		if killed {
			s.Killed = append(s.Killed, e.String())
			dying = append(dying, e)
		}
	}
	for deadline := time.Now().Add(killLimit); ; time.Sleep(time.Millisecond) {
		// A process can start others until it dies: repeat until there are none.
		orphans, err := killOrphans(dir, processes)
		if err != nil {
			return s, err
		}
		for _, o := range orphans {
			if !slices.ContainsFunc(dying, func(e entry) bool { return e.PID == o.PID }) {
				s.Killed = append(s.Killed, o.String())
				dying = append(dying, o)
			}
		}
		if len(orphans) == 0 && !slices.ContainsFunc(dying, alive) {
			return s, nil
		}
		if time.Now().After(deadline) {
			return s, fmt.Errorf("some of %v did not end within %v after SIGKILL", dying, killLimit)
		}
	}
}

// killLeftOver kills a process of a dead run, with its group, if it is still
// the one in the journal.
func killLeftOver(e entry) (bool, error) {
	if !alive(e) {
		return false, nil
	}
	// It was started as the leader of a group; if it left the group, kill the
	// process alone.
	if pgid, err := syscall.Getpgid(e.PID); err == nil && pgid == e.PID {
		_ = syscall.Kill(-e.PID, syscall.SIGKILL)
	}
	if err := syscall.Kill(e.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return false, fmt.Errorf("kill %v: %w", e, err)
	}
	return true, nil
}

// alive reports whether the process is the one in the journal and has not
// ended. A zombie, for which another process must wait, does not count.
func alive(e entry) bool {
	if verify(e.PID, e.StartTime) != nil {
		return false
	}
	st, err := state(e.PID)
	return err == nil && st != 'Z'
}

// Running lists the folders of the live runs under base (see Begin).
func Running(base string) ([]string, error) {
	parent, err := parentDir(base)
	if err != nil {
		return nil, fmt.Errorf("list the runs: %w", err)
	}
	// A run is made behind the gate, and its lock is looked at.
	gate, err := lockFile(filepath.Join(parent, gateName), true)
	if err != nil {
		return nil, fmt.Errorf("list the runs: %w", err)
	}
	defer gate.Close()
	locks, err := filepath.Glob(filepath.Join(parent, idPrefix+"*", liveName))
	if err != nil {
		return nil, fmt.Errorf("list the runs: %w", err)
	}
	var live []string
	for _, path := range locks {
		lock, err := lockFile(path, false)
		switch {
		case errors.Is(err, errLive):
			live = append(live, filepath.Dir(path))
		case err == nil:
			lock.Close()
		}
	}
	return live, nil
}
