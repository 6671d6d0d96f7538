package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// PausedBy names what Pause stops nodes by.
func (c *Cluster) PausedBy() string {
	if c.spec.Containers != nil {
		return "the freezer of the container engine"
	}
	return "SIGSTOP"
}

// Pause stops a node, as a frozen machine does: its connections stay
// open and its kernel goes on to answer for them. It returns once every thread
// of the process is stopped, as far as this system reports it. A node that is
// already paused stays so.
//
// The error is os.ErrProcessDone if the node is dead, ErrSpec if there is no
// such node, ErrStopped, ErrUnsupported while strace makes its disk slow (see
// SlowDisk), as a traced process stops differently. The node goes on after an error.
func (c *Cluster) Pause(ctx context.Context, node int) error {
	n, unlock, err := c.take(ctx, node)
	if err != nil {
		return fmt.Errorf("pause a server: %w", err)
	}
	defer unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("pause %s: %w", n.Name, err)
	}
	if tracer := c.tracer(node); tracer != nil {
		return fmt.Errorf("pause %s: %w: %s holds it; FastDisk first", n.Name, ErrUnsupported, tracer.Name())
	}
	if err := n.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("pause a server: %w", err)
	}
	if err := n.Process.AwaitStopped(ctx); err != nil {
		err = fmt.Errorf("pause %s: %w", n.Name, err)
		if goOn := n.Process.Signal(syscall.SIGCONT); goOn != nil && !errors.Is(goOn, os.ErrProcessDone) {
			err = errors.Join(err, goOn)
		}
		return err
	}
	return nil
}

// Resume lets a paused node go on. One that is not paused stays as it is. The
// error is as that of Pause.
func (c *Cluster) Resume(ctx context.Context, node int) error {
	n, unlock, err := c.take(ctx, node)
	if err != nil {
		return fmt.Errorf("resume a server: %w", err)
	}
	defer unlock()
	if err := n.Process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("resume a server: %w", err)
	}
	err = n.Until(ctx, func() (bool, error) { return !n.Paused(), nil })
	if err != nil {
		return fmt.Errorf("resume %s: %w", n.Name, err)
	}
	return nil
}
