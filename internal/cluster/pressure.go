package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/internal/scenario"
)

// ErrNotFull: a server that was filled up takes writes all the same.
var ErrNotFull = errors.New("the server is not full")

// limited is a driver whose servers have a limit at which they refuse what would
// take more room.
type limited interface {
	// fill returns when a write of ours was refused for want of room; how tells
	// by what. After an error something may be left of it.
	fill(ctx context.Context, c *Cluster, n *Node) (how string, err error)
	// drain makes room again, if there is none, and returns when there is.
	drain(ctx context.Context, c *Cluster, n *Node) error
}

// Fill takes a node's room away until Drain, and returns when it has refused a
// write of ours; how tells what was done. It forgets nothing meanwhile, and what
// takes no room goes on. Nodes are counted from 0.
//
//   - redis gets the policy noeviction and a maxmemory below what it uses.
//     Replicas heed no limit: their master does.
//   - memcached, which has to have the flag M, is filled with items of all sizes
//     that a lock may have. Whoever deletes one of its own makes room for one.
//   - etcd is told, as by itself when its quota is used up, that the member has
//     no space left. Then all members refuse, whichever it is.
//
// The error is ErrNotFull if it takes writes all the same; Drain it then, too.
// It is ErrUnsupported if these servers have no such limit, or while the node is
// paused; os.ErrProcessDone if the node is dead, ErrSpec, ErrStopped.
func (c *Cluster) Fill(ctx context.Context, node int) (how string, err error) {
	err = c.hurt(ctx, "fill up", node, func(n *Node) error {
		if err := cmp.Or(c.spec.Suffers(scenario.AbilityFull), n.awake()); err != nil {
			return err
		}
		how, err = c.driver.(limited).fill(ctx, c, n)
		return err
	})
	return how, err
}

// Drain ends Fill, and returns when the node refuses nothing for want of room;
// it does nothing if there is nothing to end. Nodes are counted from 0.
//
// The error is ErrUnsupported while the node is paused; os.ErrProcessDone if
// nobody lives who could be asked, ErrSpec, ErrStopped.
func (c *Cluster) Drain(ctx context.Context, node int) error {
	n, unlock, err := c.take(ctx, node)
	if err != nil {
		return fmt.Errorf("make room in a server: %w", err)
	}
	defer unlock()
	if c.spec.Suffers(scenario.AbilityFull) != nil {
		return nil
	}
	if err := n.awake(); err != nil {
		return fmt.Errorf("make room in %s: %w", n.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, restoreLimit)
	defer cancel()
	if err := c.driver.(limited).drain(ctx, c, n); err != nil {
		return fmt.Errorf("make room in %s: %w", n.Name, err)
	}
	return nil
}
