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

// dismissLimit is how long a watchdog may take for what we could not end: it
// waits for it as we did.
const dismissLimit = killLimit + 5*time.Second

// watchdog is the process that clears the run away if we cannot.
type watchdog struct {
	os   *os.Process
	pipe *os.File // which ends when we do
}

// Watch starts the run's watchdog, a process that clears the run away at once
// should this one be killed: the command, which gets the run's folder as one
// more argument, and must call Guard with it and its standard input. End ends
// it. Without a watchdog it is the next Sweep that clears the run away.
func (r *Run) Watch(command []string) error {
	if len(command) == 0 {
		return errors.New("watch over the run: there is no command for it")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended:
		return fmt.Errorf("watch over the run: %w", ErrEnded)
	case r.dog != nil:
		return errors.New("watch over the run: it is watched over already")
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("watch over the run: %w", err)
	}
	defer theirs.Close()
	// It shares our standard error to tell what it did. It has no parent-death
	// signal, no terminal whose Ctrl-C could reach it, and does not keep a folder
	// in use.
	p, err := os.StartProcess(command[0], append(command[:len(command):len(command)], r.dir), &os.ProcAttr{
		Dir: "/", Files: []*os.File{theirs, os.Stderr, os.Stderr}, Sys: apart(),
	})
	if err != nil {
		ours.Close()
		return fmt.Errorf("watch over the run: %w", err)
	}
	r.dog = &watchdog{os: p, pipe: ours}
	return nil
}

// dismiss ends the watchdog of a run that has ended. If that left something, the
// watchdog tries once more what we could not do, and dismiss waits for it.
func (w *watchdog) dismiss(well bool) error {
	if w == nil {
		return nil
	}
	if well {
		_ = w.os.Kill() // unless it is gone already
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

// Guard is what a watchdog does: it reads from in, the pipe from the run's
// process, until that ends. If the run's folder is still there, the process was
// killed, and Guard clears the run away as Sweep does. The answer is nil if there
// was nothing to clear away.
func Guard(dir string, in io.Reader) (*Swept, error) {
	if err := checkRunDir(dir); err != nil {
		return nil, fmt.Errorf("watch over the run in %s: %w", dir, err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return nil, fmt.Errorf("watch over the run in %s: %w", dir, err)
	}
	// The lock is released a moment after the pipe ended, or sooner.
	lock, err := lockPresent(filepath.Join(dir, liveName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // the run ended well, or somebody's sweep was quicker
	}
	if err != nil {
		return nil, fmt.Errorf("clear away the killed run in %s: %w", dir, err)
	}
	defer lock.Close()
	s, err := endLeftOvers(dir)
	if err == nil {
		err = removeRun(dir)
	}
	if err != nil {
		return &s, fmt.Errorf("clear away the killed run in %s: %w", dir, err)
	}
	return &s, nil
}

// checkRunDir refuses a folder that no run of ours can have made: what is in it
// would be removed.
func checkRunDir(dir string) error {
	parent, name := filepath.Split(dir)
	parent = filepath.Clean(parent)
	if !filepath.IsAbs(dir) || filepath.Base(parent) != parentName() || !strings.HasPrefix(name, idPrefix) || len(name) != len(idPrefix)+8 {
		return errors.New("no run of ours has such a folder")
	}
	return ownedByUs(parent)
}
