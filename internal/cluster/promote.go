package cluster

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/internal/backend"
)

// Promote makes a replica the primary, once the old primary is dead or fenced: the
// replica applies the writes that it has received, stops following, and accepts
// writes. Writes that the old primary had not sent are lost. An old primary that
// lives follows the new one from then on; so does one that is started again later.
// Promoting the fenced primary itself opens it again.
//
// The error is ErrNotFenced if the old primary may still take writes, as when it
// is paused; ErrUnsupported where servers find a leader by themselves; ErrServer
// if the replica cannot apply what it has; ErrSpec, ErrStopped. It may be tried
// again.
func (c *Cluster) Promote(ctx context.Context, node int) error { return c.promote(ctx, node, true) }

// PromoteUnfenced is Promote without a check of the old primary, like a controller
// that cannot reach the primary and assumes it dead. An old primary that is not
// dead then accepts writes beside the new one, until it is fenced or killed.
func (c *Cluster) PromoteUnfenced(ctx context.Context, node int) error {
	return c.promote(ctx, node, false)
}

func (c *Cluster) promote(ctx context.Context, node int, fenced bool) error {
	return c.giveRole(ctx, "promote", node, func(ctx context.Context, p backend.Promoter, n *Node) error {
		return p.Promote(ctx, c.servers, n, fenced)
	})
}

// Fence makes a primary reject writes, and returns when no
// write is under way there any more. Clients still read from it. The error is as that of Promote.
func (c *Cluster) Fence(ctx context.Context, node int) error {
	return c.giveRole(ctx, "fence", node, func(ctx context.Context, p backend.Promoter, n *Node) error {
		return p.Fence(ctx, c.servers, n)
	})
}

// giveRole changes a living node's role while no other role changes.
func (c *Cluster) giveRole(ctx context.Context, verb string, node int, do func(context.Context, backend.Promoter, *Node) error) error {
	n, unlock, err := c.take(ctx, node)
	if err != nil {
		return fmt.Errorf("%s a server: %w", verb, err)
	}
	defer unlock()
	p, ok := c.backend.(backend.Promoter)
	switch {
	case !ok:
		err = fmt.Errorf("%w: a %s %s gives out its roles itself", ErrUnsupported, c.spec.Backend, c.spec.Topology)
	case !n.Alive():
		err = fmt.Errorf("%w: it is dead; Restart it", ErrServer)
	default:
		ctx, cancel := c.untilStop(ctx)
		defer cancel()
		c.roles.Lock()
		defer c.roles.Unlock()
		err = do(ctx, p, n)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, n.Name, err)
	}
	return nil
}
