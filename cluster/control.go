package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
)

// ErrStopped: the cluster was stopped, and starts nothing more.
var ErrStopped = errors.New("the cluster is stopped")

// slot is a node's place in the cluster.
type slot struct {
	changing sync.Mutex // held while the node is killed, started again or stopped
	node     *Node      // guarded by the cluster's mu
}

// Kill ends a node as a crash does, by SIGKILL, and returns when its process is
// gone; its data stays as it was. A stopped process is killed too. Nodes are
// counted from 0, in the order of Addresses. The error is os.ErrProcessDone if
// the node was dead already, ErrSpec if there is no such node.
func (c *Cluster) Kill(ctx context.Context, node int) error {
	n, unlock, err := c.take(node)
	if err != nil {
		return fmt.Errorf("kill a server: %w", err)
	}
	defer unlock()
	if !n.alive() {
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
// majority needs are to be started side by side. A node of redis comes back in
// the role that its own files tell, as it would anywhere; one of mysql in the
// role that Promote left it.
//
// The error is ErrServer if the node lives, or does not come up; ErrSpec if
// there is no such node; ErrStopped. A node that did not come up is dead.
func (c *Cluster) Restart(ctx context.Context, node int) error {
	old, unlock, err := c.take(node)
	if err != nil {
		return fmt.Errorf("start a server again: %w", err)
	}
	defer unlock()
	if old.alive() {
		return fmt.Errorf("start %s again: %w: it is still alive, with pid %d; Kill it first", old.Name, ErrServer, old.Process.PID())
	}
	ctx, cancel := c.untilStop(ctx)
	defer cancel()
	n := &Node{Name: old.Name, Address: old.Address, index: old.index, ports: old.ports, dir: old.dir, log: old.log}
	err = c.bringUp(ctx, n)
	if d, ok := c.driver.(promoter); ok && err == nil {
		err = d.rejoin(ctx, c, n)
	}
	if err != nil {
		if n.Process != nil {
			err = errors.Join(err, n.Process.Kill())
		}
		return fmt.Errorf("start %s again: %w", old.Name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slots[node].node = n
	return nil
}

// take keeps a node from being changed by anybody else, until unlock.
func (c *Cluster) take(node int) (n *Node, unlock func(), err error) {
	if node < 0 || node >= len(c.slots) {
		return nil, nil, fmt.Errorf("%w: it has no node %d; its %d nodes are counted from 0", ErrSpec, node, len(c.slots))
	}
	s := c.slots[node]
	s.changing.Lock()
	select {
	case <-c.stopping:
		s.changing.Unlock()
		return nil, nil, ErrStopped
	default:
	}
	return c.Nodes()[node], s.changing.Unlock, nil
}

// untilStop ends also when the cluster is stopped, or takes longer than any
// start may.
func (c *Cluster) untilStop(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	go func() {
		select {
		case <-c.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
