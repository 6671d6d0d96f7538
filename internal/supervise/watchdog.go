package supervise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// dismissLimit is how long a watchdog may take for the processes that End could
// not end.
const dismissLimit = killLimit + 5*time.Second

// watchdog is the process that ends the run if our process is killed.
type watchdog struct {
	os   *os.Process
	pipe *os.File // ends with our process
}

// Watch starts the run's watchdog, a process that ends and removes the run if
// our process is killed. The command gets the run's folder as a further
// argument, and must call Guard with it and its standard input. End ends the
// watchdog. Without one the next Sweep removes the run.
func (r *Run) Watch(command []string) error {
	if len(command) == 0 {
		return errors.New("start the run's watchdog: empty command")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended:
		return fmt.Errorf("start the run's watchdog: %w", ErrEnded)
	case r.dog != nil:
		return errors.New("start the run's watchdog: it is running already")
	}
	childEnd, ourEnd, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the run's watchdog: %w", err)
	}
	defer childEnd.Close()
	// It shares our standard error for its report. It has no parent-death
	// signal, no terminal whose Ctrl-C could reach it, and keeps no folder in
	// use.
	p, err := os.StartProcess(command[0], append(command[:len(command):len(command)], r.dir), &os.ProcAttr{
		Dir: "/", Files: []*os.File{childEnd, os.Stderr, os.Stderr}, Sys: ownSession(),
	})
	if err != nil {
		ourEnd.Close()
		return fmt.Errorf("start the run's watchdog: %w", err)
	}
	r.dog = &watchdog{os: p, pipe: ourEnd}
	return nil
}

// dismiss ends the watchdog of a run that has ended. If the run left processes,
// the watchdog tries again to end them, and dismiss waits for it.
func (w *watchdog) dismiss(clean bool) error {
	if w == nil {
		return nil
	}
	if clean {
		_ = w.os.Kill() // unless it has ended already
		_, _ = w.os.Wait()
		w.pipe.Close()
		return nil
	}
	w.pipe.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = w.os.Wait()
	}()
	timer := time.NewTimer(dismissLimit)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		_ = w.os.Kill()
		<-ended
		return fmt.Errorf("the run's watchdog did not end within %v and was killed", dismissLimit)
	}
}

// Guard is the watchdog's work: it reads in, the pipe from the run's process,
// until it ends. If the run's folder still exists then, the process was killed,
// and Guard removes the run as Sweep does, after it has called first (nil: nothing
// to call). The result is nil if there was nothing to remove.
func Guard(dir string, in io.Reader, first func() error) (*Swept, error) {
	if err := checkRunDir(dir); err != nil {
		return nil, fmt.Errorf("watch the run in %s: %w", dir, err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return nil, fmt.Errorf("watch the run in %s: %w", dir, err)
	}
	// The lock is released at about the time of the pipe's end.
	lock, err := lockPresent(filepath.Join(dir, liveName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // the run ended normally, or a sweep removed it
	}
	if err != nil {
		return nil, fmt.Errorf("remove the killed run in %s: %w", dir, err)
	}
	defer lock.Close()
	var errFirst error
	if first != nil {
		errFirst = first()
	}
	s, err := endLeftOvers(dir)
	if err == nil {
		err = removeRun(dir)
	}
	err = errors.Join(errFirst, err)
	if err != nil {
		return &s, fmt.Errorf("remove the killed run in %s: %w", dir, err)
	}
	return &s, nil
}

// checkRunDir rejects a folder that no run of this user can have created, since
// its contents would be removed.
func checkRunDir(dir string) error {
	parent, name := filepath.Split(dir)
	parent = filepath.Clean(parent)
	if !filepath.IsAbs(dir) || filepath.Base(parent) != parentName() || !strings.HasPrefix(name, idPrefix) || len(name) != len(idPrefix)+8 {
		return errors.New("not the folder of a run of this user")
	}
	return ownedByUs(parent)
}
