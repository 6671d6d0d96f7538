package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// ErrStranger: the pid now belongs to another process, or to one that must
// never be signalled.
var ErrStranger = errors.New("not the process that was started")

// Command is what to start.
type Command struct {
	Name string   // for messages and the journal
	Path string   // of the executable; it is not looked up in PATH
	Args []string // without the program's own name
	Env  []string // nil: our environment
	Dir  string   // working folder; "": ours

	Stdin  *os.File // nil: empty
	Stdout *os.File // nil: discarded
	Stderr *os.File // nil: discarded

	// StdinPipe and StdoutPipe connect the process to Process.Stdin and
	// Process.Stdout instead of the files above.
	StdinPipe, StdoutPipe bool

	// Family: the program starts processes of its own, as a script does. A
	// parent-death signal would reach the program alone; with Family a shell
	// supervises the whole group, and kills it when our process ends. The
	// program's standard input is then empty, and Process is the shell, which
	// exits as the program does.
	Family bool

	// Tree says that the program serves by processes that it starts in sessions of
	// their own, as PostgreSQL does: SIGSTOP, SIGCONT and SIGKILL go to all of
	// them, and the process counts as stopped when all of them are.
	Tree bool

	// Account is the user and group to run as, nil: ours. It needs root. (The
	// parent-death signal is set after the change of user, and so stays in force.)
	Account *Account

	// OwnIPC gives the process System V shared memory of its own, which ends with
	// it however it ends. It needs root, and Linux.
	OwnIPC bool
}

// Account is a user of this machine.
type Account struct{ UID, GID uint32 }

// watchScript runs its arguments as a command, and kills its process group,
// itself included, at the end of its standard input: a pipe that only our
// process holds. (A shell gives background jobs an empty standard input,
// which is why the script keeps it as descriptor 3.)
const watchScript = `exec 3<&0
"$@" </dev/null 3<&- &
child=$!
{ read -r line <&3; kill -9 0; } &
exec 3<&-
wait "$child"`

// wrapped is the command that runs c under a supervising shell.
func (c Command) wrapped() Command {
	c.Args = append([]string{"-c", watchScript, c.Name, c.Path}, c.Args...)
	c.Path, c.Stdin, c.StdinPipe = "/bin/sh", nil, true
	return c
}

// Process is a child process. Its methods are safe for concurrent use.
type Process struct {
	name      string
	pid       int
	startTime string
	os        *os.Process

	// Stdin and Stdout are our ends of the requested pipes, else nil. The
	// caller closes them; after the end of the process Stdout still returns its
	// output.
	Stdin  io.WriteCloser
	Stdout io.ReadCloser

	tree  bool      // signals go to its descendants too
	watch io.Closer // the standard input of a family's shell, else nil

	mu     sync.Mutex // held while signalling, and while reaping
	reaped bool
	state  *os.ProcessState
	done   chan struct{}
}

// envRun is the environment variable of every child and its descendants with
// the run's folder.
const envRun = "LOCKBENCH_RUN"

func (c Command) start(s *starter, dir string) (*Process, error) {
	if !filepath.IsAbs(c.Path) {
		return nil, fmt.Errorf("the path %q is not absolute", c.Path)
	}
	if c.Family {
		if c.StdinPipe || c.Stdin != nil {
			return nil, errors.New("a family has no standard input")
		}
		// The shell would report it later, as an exit status.
		if _, err := os.Stat(c.Path); err != nil {
			return nil, err
		}
		c = c.wrapped()
	}
	p := &Process{name: c.Name, tree: c.Tree, done: make(chan struct{})}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	childFiles := []*os.File{null}
	defer func() {
		for _, f := range childFiles {
			f.Close()
		}
	}()
	in, out, errs := orFile(c.Stdin, null), orFile(c.Stdout, null), orFile(c.Stderr, null)
	if c.StdinPipe {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.Stdin, in, childFiles = w, r, append(childFiles, r)
	}
	if c.StdoutPipe {
		r, w, err := os.Pipe()
		if err != nil {
			p.closePipes()
			return nil, err
		}
		p.Stdout, out, childFiles = r, w, append(childFiles, w)
	}
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	p.os, err = s.start(c.Path, append([]string{c.Path}, c.Args...), &os.ProcAttr{
		Dir: c.Dir, Env: append(slices.Clip(env), envRun+"="+dir), Files: []*os.File{in, out, errs}, Sys: c.sysProcAttr(),
	})
	if err != nil {
		p.closePipes()
		return nil, err
	}
	p.pid = p.os.Pid
	if c.Family {
		p.watch, p.Stdin = p.Stdin, nil
	}
	return p, nil
}

func orFile(f, other *os.File) *os.File {
	if f == nil {
		return other
	}
	return f
}

func (p *Process) closePipes() {
	if p.Stdin != nil {
		p.Stdin.Close()
	}
	if p.Stdout != nil {
		p.Stdout.Close()
	}
}

// reap waits for the process's end, and kills what is left of its process
// group. That is safe, since an ended process keeps its pid until it is waited
// for. Where the system cannot wait without releasing the pid, the group is not
// killed.
func (p *Process) reap() {
	var state *os.ProcessState
	keepsPID := waitEnded(p.pid) == nil
	if !keepsPID {
		state, _ = p.os.Wait()
	}
	p.mu.Lock()
	if keepsPID {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
		state, _ = p.os.Wait()
	}
	p.state, p.reaped = state, true
	p.mu.Unlock()
	if p.watch != nil {
		p.watch.Close() // kills the group where it was not killed above
	}
	close(p.done)
}

// Name is the name in the command.
func (p *Process) Name() string { return p.name }

// PID is the process's id.
func (p *Process) PID() int { return p.pid }

// StartTime distinguishes this process from a later one with the same pid. It
// is opaque: equal values mean the same start.
func (p *Process) StartTime() string { return p.startTime }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the process ended: nil while it runs, and after exit status 0.
func (p *Process) Err() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	if p.state == nil {
		return fmt.Errorf("%s (pid %d): unknown exit status", p.name, p.pid)
	}
	if p.state.Success() {
		return nil
	}
	return fmt.Errorf("%s (pid %d): %s", p.name, p.pid, p.state)
}

// Signal sends sig to the process, after a check that the pid still belongs to
// it. The error is os.ErrProcessDone if it has ended, or ErrStranger.
func (p *Process) Signal(sig os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return fmt.Errorf("signal %s (pid %d): %w", p.name, p.pid, os.ErrProcessDone)
	}
	if err := verify(p.pid, p.startTime); err != nil {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	send := p.os.Signal
	if p.tree {
		send = func(sig os.Signal) error { return signalTree(p.os, sig) }
	}
	if err := send(sig); err != nil {
		return fmt.Errorf("signal %s (pid %d): %w", p.name, p.pid, err)
	}
	return nil
}

// Stop ends the process and what is left of its group: SIGTERM, then SIGKILL
// when grace is over or ctx ends. It returns when the process has ended; see
// Err for how. The error means that it did not end.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	if p.tree {
		defer endLeft(treeMembers(p.pid)) // those that outlive it
	}
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	// A stopped process handles its SIGTERM only after SIGCONT.
	_ = p.Signal(syscall.SIGCONT)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	return p.Kill()
}

// Kill ends the process and its group with SIGKILL and returns when it has
// ended. The error means that it did not end.
func (p *Process) Kill() error {
	p.mu.Lock()
	if !p.reaped && verify(p.pid, p.startTime) == nil {
		if p.tree {
			_ = signalTree(p.os, syscall.SIGKILL)
		}
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
		_ = p.os.Kill()
	}
	p.mu.Unlock()
	timer := time.NewTimer(killLimit)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return fmt.Errorf("%s (pid %d) does not end after SIGKILL", p.name, p.pid)
	}
}

// State is the process's state as the system reports it: 'R' running, 'S'
// sleeping, 'D' waiting for a device, 'T' stopped, 'Z' ended.
func (p *Process) State() (byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return 'Z', nil
	}
	if err := verify(p.pid, p.startTime); err != nil {
		return 0, err
	}
	return state(p.pid)
}

// CPU is the CPU time of the process, user and system mode, all threads
// together. After its end it is the total.
func (p *Process) CPU() (time.Duration, error) {
	p.mu.Lock()
	reaped := p.reaped
	d, err := time.Duration(0), error(nil)
	if !reaped {
		d, err = cpuTime(p.pid)
		if st, stErr := state(p.pid); stErr == nil && st == 'Z' {
			reaped = true // it will be reaped soon
		}
	}
	p.mu.Unlock()
	if reaped {
		<-p.done
		if p.state == nil {
			return 0, fmt.Errorf("CPU time of %s (pid %d): %w", p.name, p.pid, os.ErrProcessDone)
		}
		return p.state.UserTime() + p.state.SystemTime(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("CPU time of %s (pid %d): %w", p.name, p.pid, err)
	}
	return d, nil
}

// verify rejects pids that must not be signalled: init, our own, and those
// whose process did not start at start.
func verify(pid int, start string) error {
	if pid <= 1 || pid == os.Getpid() || start == "" {
		return fmt.Errorf("pid %d: %w", pid, ErrStranger)
	}
	now, err := startTime(pid)
	if err != nil {
		return fmt.Errorf("pid %d: %w", pid, err)
	}
	if now != start {
		return fmt.Errorf("pid %d began at %s instead of %s: %w", pid, now, start, ErrStranger)
	}
	return nil
}
