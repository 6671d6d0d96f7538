package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/lockbench/lockbench/internal/backend"
)

// ErrStopped: the cluster was stopped, and starts nothing more.
var ErrStopped = errors.New("the cluster is stopped")

// turn is a lock whose waiters give up when their context ends: a change of a
// server can take minutes. It has room for its one holder.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn. One that is free is taken even if ctx has ended. The
// error is that of ctx.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Lock waits for the turn however long it takes.
func (t turn) Lock() { t <- struct{}{} }

// Unlock gives the turn back.
func (t turn) Unlock() { <-t }

// Kill ends a node as a crash does, by SIGKILL, and returns when its process is
// gone; its data stays as it was. A stopped process is killed too. Nodes are
// counted from 0, in the order of Addresses. The error is os.ErrProcessDone if
// the node was dead already, ErrSpec if there is no such node.
func (c *Cluster) Kill(ctx context.Context, node int) error {
	n, unlock, err := c.take(ctx, node)
	if err != nil {
		return fmt.Errorf("kill a server: %w", err)
	}
	defer unlock()
	if !n.Alive() {
		return fmt.Errorf("kill %s: %w", n.Name, os.ErrProcessDone)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("kill %s: %w", n.Name, err)
	}
	killed := make(chan error, 1)
	go func() { killed <- n.Process.Kill() }()
	select {
	case err := <-killed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of %s: %w", n.Name, ctx.Err())
	}
}

// Restart starts a dead node again, with the address, settings and data that it
// had, and returns when it serves requests. Its counters and its CPU time begin
// again. A member of a quorum serves only with a majority, so members that a
// majority needs are to be started side by side. A node comes back in the role
// stored in its own files, or that Promote left it.
//
// The error is ErrServer if the node lives, or does not come up; ErrSpec if
// there is no such node; ErrStopped. A node that did not come up is dead.
func (c *Cluster) Restart(ctx context.Context, node int) error {
	old, unlock, err := c.take(ctx, node)
	if err != nil {
		return fmt.Errorf("start a server again: %w", err)
	}
	defer unlock()
	if old.Alive() {
		return fmt.Errorf("start %s again: %w: it is still alive, with pid %d; Kill it first", old.Name, ErrServer, old.Process.PID())
	}
	ctx, cancel := c.untilStop(ctx)
	defer cancel()
	n := old.At(old.Address)
	n.Dir, n.Log = old.Dir, old.Log
	err = c.bringUp(ctx, n)
	if p, ok := c.backend.(backend.Promoter); ok && err == nil {
		c.roles.Lock()
		err = p.Rejoin(ctx, c.servers, n)
		c.roles.Unlock()
	}
	if err != nil {
		if n.Process != nil {
			err = errors.Join(err, n.Process.Kill())
		}
		return fmt.Errorf("start %s again: %w", old.Name, err)
	}
	c.servers.SetNode(n)
	return nil
}

// take keeps other callers from changing a node until unlock. While another caller
// changes it, take waits until ctx ends, and returns that error, or until the
// cluster is stopped.
func (c *Cluster) take(ctx context.Context, node int) (n *Node, unlock func(), err error) {
	if node < 0 || node >= len(c.turns) {
		return nil, nil, fmt.Errorf("%w: it has no node %d; its %d nodes are counted from 0", ErrSpec, node, len(c.turns))
	}
	s := c.turns[node]
	ctx, cancel := c.untilStopped(ctx)
	defer cancel()
	if err := s.take(ctx); err != nil {
		return nil, nil, cmp.Or(c.stopped(), fmt.Errorf("wait for what is under way with %s: %w", c.Nodes()[node].Name, err))
	}
	if err := c.stopped(); err != nil {
		s.Unlock()
		return nil, nil, err
	}
	return c.Nodes()[node], s.Unlock, nil
}

// stopped is ErrStopped once the cluster is.
func (c *Cluster) stopped() error {
	select {
	case <-c.stopping:
		return ErrStopped
	default:
		return nil
	}
}

// untilStop ends also when the cluster is stopped, or takes longer than any
// start may.
func (c *Cluster) untilStop(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	ctx, end := c.untilStopped(ctx)
	return ctx, func() { end(); cancel() }
}

// untilStopped ends also when the cluster is stopped.
func (c *Cluster) untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-c.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
