package cluster

import (
	"cmp"
	"context"
	"fmt"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/scenario"
)

// Fill takes a node's room away until Drain, and returns when it has refused a
// write of ours; how describes the means (see the Fill of each backend). The node
// loses no data meanwhile, and still serves requests that take no space. Nodes are
// counted from 0.
//
// The error is ErrNotFull if it takes writes all the same; Drain it then, too.
// It is ErrUnsupported if these servers have no such limit, or while the node is
// paused; os.ErrProcessDone if the node is dead, ErrSpec, ErrStopped.
func (c *Cluster) Fill(ctx context.Context, node int) (how string, err error) {
	err = c.hurt(ctx, "fill up", node, func(n *Node) error {
		if err := cmp.Or(c.spec.Supports(scenario.AbilityFull), n.Awake()); err != nil {
			return err
		}
		how, err = c.backend.(backend.Filler).Fill(ctx, c.servers, n)
		return err
	})
	return how, err
}

// Drain ends Fill, and returns when the node refuses nothing for lack of space;
// it does nothing if there is nothing to end. Nodes are counted from 0.
//
// The error is ErrUnsupported while the node is paused; os.ErrProcessDone if no
// node lives that could do it, ErrSpec, ErrStopped.
func (c *Cluster) Drain(ctx context.Context, node int) error {
	n, unlock, err := c.take(ctx, node)
	if err != nil {
		return fmt.Errorf("make room in a server: %w", err)
	}
	defer unlock()
	if c.spec.Supports(scenario.AbilityFull) != nil {
		return nil
	}
	if err := n.Awake(); err != nil {
		return fmt.Errorf("make room in %s: %w", n.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, backend.RestoreLimit)
	defer cancel()
	if err := c.backend.(backend.Filler).Drain(ctx, c.servers, n); err != nil {
		return fmt.Errorf("make room in %s: %w", n.Name, err)
	}
	return nil
}
