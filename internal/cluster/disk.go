package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
)

// ErrEndedEarly: a fault of a server ended before it was healed. Nothing is left
// of it.
var ErrEndedEarly = errors.New("the fault was over too early")

// tracers are the programs that make servers' disks slow, by node. They are our
// children: when we are gone they are too, and the kernel lets go of the servers.
type tracers struct {
	mu sync.Mutex
	by map[int]tracer
}

type tracer struct {
	*supervise.Process
	of backend.Process // the server's
}

// detachLimit is how long a tracer may take to let go of a server by itself.
const detachLimit = 10 * time.Second

// SlowDisk makes every fsync and fdatasync of a node take longer by so much,
// until FastDisk; a second call replaces the first. It returns when it is in
// force for every thread of the node; how describes the means: the library of
// Spec.Clock where it is loaded, else strace, under which every other system
// call takes some microseconds longer too. With strace the effect ends with the
// node's process, and the node cannot be paused. Nodes are counted from 0.
//
// The error is ErrUnsupported if no request to these servers waits for a disk,
// ErrMachine if this machine cannot do it; os.ErrProcessDone if the node is
// dead, ErrSpec, ErrStopped.
func (c *Cluster) SlowDisk(ctx context.Context, node int, by time.Duration) (how string, err error) {
	err = c.hurt(ctx, "slow down the disk of", node, func(n *Node) error {
		if by <= 0 {
			return fmt.Errorf("%w: a disk slower by %v is none; name a time", ErrSpec, by)
		}
		if err := c.spec.Supports(scenario.AbilitySlowDisk); err != nil {
			return err
		}
		if c.shimmed(n) == nil {
			how = "preloaded library"
			return withShim(n, func(s *shimState) error { s.late.Store(int64(by)); return nil })
		}
		// A tracer that has exited by itself is replaced, too.
		if err := c.detach(ctx, node); err != nil && !errors.Is(err, ErrEndedEarly) {
			return err
		}
		how, err = c.attach(ctx, n, by)
		return err
	})
	return how, err
}

// FastDisk ends SlowDisk; it does nothing if there is nothing to end. The node
// may be dead. The error is ErrEndedEarly if strace had ended by itself: the disk
// was not slow for as long as it was to be; ErrSpec, ErrStopped.
func (c *Cluster) FastDisk(ctx context.Context, node int) error {
	n, unlock, err := c.take(ctx, node)
	if err != nil {
		return fmt.Errorf("make a disk fast again: %w", err)
	}
	defer unlock()
	err = c.detach(ctx, node)
	if c.spec.Clock {
		err = errors.Join(err, withShim(n, func(s *shimState) error { s.late.Store(0); return nil }))
	}
	if err != nil {
		return fmt.Errorf("make the disk of %s fast again: %w", n.Name, err)
	}
	return nil
}

// attach has strace hold up the node's flushes.
func (c *Cluster) attach(ctx context.Context, n *Node, by time.Duration) (how string, err error) {
	if err := missingTracer(); err != nil {
		return "", err
	}
	if err := n.Awake(); err != nil {
		return "", err
	}
	stderr, err := os.OpenFile(filepath.Join(n.Dir, "strace.log"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	defer stderr.Close()
	const calls = "fsync,fdatasync"
	strace, err := c.run.Start(supervise.Command{
		Name: n.Name + " strace", Path: backend.Lookup("strace"), Dir: n.Dir, Stderr: stderr,
		Args: []string{
			"-f", "-q", "-p", fmt.Sprint(n.Process.PID()), "-o", os.DevNull, "-e", "trace=" + calls,
			"-e", fmt.Sprintf("inject=%s:delay_enter=%d", calls, max(1, by.Microseconds())),
		},
	})
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, detachLimit)
	defer cancel()
	err = n.Until(ctx, func() (bool, error) {
		select {
		case <-strace.Done():
			return false, errors.Join(errors.New("strace has ended"), strace.Err())
		default:
			return tracedBy(n.Process, strace.PID())
		}
	})
	if err != nil {
		text, _ := io.ReadAll(io.NewSectionReader(stderr, 0, 500))
		return "", errors.Join(fmt.Errorf("%w: %w: %s", ErrMachine, err, strings.TrimSpace(string(text))), strace.Stop(ctx, detachLimit))
	}
	c.tracers.mu.Lock()
	defer c.tracers.mu.Unlock()
	if c.tracers.by == nil {
		c.tracers.by = map[int]tracer{}
	}
	c.tracers.by[n.Index] = tracer{strace, n.Process}
	return fmt.Sprintf("strace (pid %d) holds up %s", strace.PID(), calls), nil
}

// tracer is the node's living tracer, or nil.
func (c *Cluster) tracer(node int) *supervise.Process {
	c.tracers.mu.Lock()
	defer c.tracers.mu.Unlock()
	if t, ok := c.tracers.by[node]; ok && !over(t.Process) {
		return t.Process
	}
	return nil
}

// over reports whether a process has ended, even if it has not been reaped yet.
func over(p backend.Process) bool {
	state, err := p.State()
	return err != nil || state == 'Z'
}

// detach ends the node's tracer, if it has one. The server goes on: strace
// detaches from it, and if strace cannot, the kernel does.
func (c *Cluster) detach(ctx context.Context, node int) error {
	c.tracers.mu.Lock()
	t, ok := c.tracers.by[node]
	delete(c.tracers.by, node)
	c.tracers.mu.Unlock()
	switch {
	case !ok:
		return nil
	case over(t.Process) && !over(t.of):
		return fmt.Errorf("%w: %s (pid %d) exited unexpectedly at an unknown time", ErrEndedEarly, t.Name(), t.PID())
	}
	if err := t.Stop(ctx, detachLimit); err != nil {
		c.tracers.mu.Lock()
		defer c.tracers.mu.Unlock()
		c.tracers.by[node] = t
		return err
	}
	return nil
}

// detachAll ends all tracers, so that the servers can end without delay. Tracers
// that do not end now end with the run.
func (c *Cluster) detachAll(ctx context.Context) {
	for i := range c.turns {
		_ = c.detach(ctx, i)
	}
}

// missingTracer returns what this machine lacks to slow down the disk of a server
// that no library can be loaded into.
func missingTracer() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("%w: a server's disk can be made slow on Linux only", ErrMachine)
	}
	if backend.Lookup("strace") == "" {
		return fmt.Errorf("%w: strace not found: apt-get install strace", ErrMachine)
	}
	scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	switch strings.TrimSpace(string(scope)) {
	case "3":
		return fmt.Errorf("%w: kernel.yama.ptrace_scope=3 forbids to trace any process, until the machine is started again", ErrMachine)
	case "1", "2":
		if err == nil && !backend.Root() {
			return fmt.Errorf("%w: kernel.yama.ptrace_scope=%s allows root only to trace a server: sysctl kernel.yama.ptrace_scope=0", ErrMachine, strings.TrimSpace(string(scope)))
		}
	}
	return nil
}
