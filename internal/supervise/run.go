package supervise

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// ErrEnded: the run has ended, and no more processes can be started.
var ErrEnded = errors.New("the run has ended")

// defaultGrace is how long End waits after SIGTERM.
const defaultGrace = 5 * time.Second

// maxDir leaves room for unix sockets in a run's folder: their paths are
// limited to 104 bytes (macOS) or 108 (Linux).
const maxDir = 72

// Run is one run's folder and its child processes. Its methods are safe for
// concurrent use.
type Run struct {
	id, dir string
	lock    *os.File // flock'd while the run lives
	starter *starter

	mu      sync.Mutex
	journal *os.File
	procs   []*Process
	dog     *watchdog // nil: none
	ended   bool

	endOnce sync.Once
	endErr  error
}

// Begin creates a run's folder under base, or under the system's folder for
// temporary files if base is empty. The caller must call End.
func Begin(base string) (*Run, error) {
	parent, err := parentDir(base)
	if err != nil {
		return nil, fmt.Errorf("begin a run: %w", err)
	}
	// Without its lock the new folder looks dead: the gate makes sweeps wait.
	gate, err := lockFile(filepath.Join(parent, gateName), true)
	if err != nil {
		return nil, fmt.Errorf("begin a run: %w", err)
	}
	defer gate.Close()
	for range 16 {
		var b [4]byte
		rand.Read(b[:])
		r := &Run{id: idPrefix + hex.EncodeToString(b[:])}
		r.dir = filepath.Join(parent, r.id)
		err = os.Mkdir(r.dir, 0o700)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("begin a run: make its folder: %w", err)
		}
		if err := r.open(); err != nil {
			os.RemoveAll(r.dir)
			return nil, fmt.Errorf("begin a run: %w", err)
		}
		return r, nil
	}
	return nil, fmt.Errorf("begin a run: no free name in %s: %w", parent, err)
}

func (r *Run) open() (err error) {
	if r.lock, err = lockFile(filepath.Join(r.dir, liveName), false); err != nil {
		return err
	}
	if r.journal, err = createJournal(r.dir); err != nil {
		r.lock.Close()
		return err
	}
	r.starter = newStarter()
	return nil
}

// ID is the run's name, unique on this machine among live runs.
func (r *Run) ID() string { return r.id }

// Dir is the run's folder, for data that is not kept, and for unix sockets,
// since its path is short. End removes it.
func (r *Run) Dir() string { return r.dir }

// Start starts a child process and writes it to the journal. End stops it at
// the latest.
func (r *Run) Start(c Command) (*Process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil, fmt.Errorf("start %s: %w", c.Name, ErrEnded)
	}
	p, err := c.start(r.starter, r.dir)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	// Before the reaper starts, so that the pid cannot belong to another
	// process when its start time is read.
	p.startTime, err = startTime(p.pid)
	if err == nil {
		err = appendJournal(r.journal, entry{PID: p.pid, StartTime: p.startTime, Name: c.Name, Tree: c.Tree})
	}
	if err != nil {
		_ = p.os.Kill()
		_, _ = p.os.Wait()
		p.closePipes()
		if p.watch != nil {
			p.watch.Close()
		}
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	go p.reap()
	r.procs = append(r.procs, p)
	return p, nil
}

// End stops every running process in parallel: SIGTERM, after five seconds (or
// when ctx ends) SIGKILL. Then it removes the run's folder. Another call waits
// for the first and returns its result.
func (r *Run) End(ctx context.Context) error {
	r.endOnce.Do(func() { r.endErr = r.end(ctx) })
	return r.endErr
}

func (r *Run) end(ctx context.Context) error {
	r.mu.Lock()
	r.ended = true
	procs, dog := r.procs, r.dog
	r.mu.Unlock()

	errs := make([]error, len(procs))
	var wg sync.WaitGroup
	for i, p := range procs {
		wg.Go(func() { errs[i] = p.Stop(ctx, defaultGrace) })
	}
	wg.Wait()
	// The end of the thread kills (on Linux) the processes that Stop could not end.
	r.starter.stop()
	r.journal.Close()
	err := errors.Join(errs...)
	if err == nil {
		if rmErr := removeRun(r.dir); rmErr != nil {
			err = fmt.Errorf("remove the run's folder: %w", rmErr)
		}
	}
	// If a process is left, the folder stays, unlocked: the watchdog or a sweep
	// reads its journal.
	r.lock.Close()
	return errors.Join(err, dog.dismiss(err == nil))
}

// removeRun removes a run's folder behind the gate: a sweep would otherwise
// create a file in a half-removed folder.
func removeRun(dir string) error {
	gate, err := lockFile(filepath.Join(filepath.Dir(dir), gateName), true)
	if err != nil {
		return err
	}
	defer gate.Close()
	return os.RemoveAll(dir)
}

const (
	gateName = "gate"
	liveName = "live"
	idPrefix = "r"
)

// parentDir creates <base>/lockbench-<uid> and checks that it belongs to this
// user: any user can create a folder of that name in a shared /tmp.
func parentDir(base string) (string, error) {
	name := parentName()
	if base == "" {
		base = os.TempDir()
		if len(filepath.Join(base, name)) > maxDir-10 && !strings.HasPrefix(base, "/tmp") {
			base = "/tmp"
		}
	}
	base, err := filepath.Abs(base)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, name)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("make the folder of runs: %w", err)
	}
	if err := ownedByUs(dir); err != nil {
		return "", fmt.Errorf("%w: remove it, or choose another folder with TMPDIR", err)
	}
	return dir, nil
}

// parentName is the name of the folder that holds a user's runs.
func parentName() string { return fmt.Sprintf("lockbench-%d", os.Getuid()) }
