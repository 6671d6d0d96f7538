package cluster

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/internal/backend"
)

// Healthy returns nil when every server lives and answers a real request, and
// the servers have their roles and links as at the start: replicas are linked to
// one leader, and the watchers agree on it. If a server is dead or paused, the
// error is ErrServer, with its last log lines.
func (c *Cluster) Healthy(ctx context.Context) error {
	err := backend.SideBySide(c.servers.All(), func(_ int, n *Node) error {
		if !n.Alive() {
			return n.Died()
		}
		if n.Paused() {
			return fmt.Errorf("%s: %w: it is paused; Resume it", n.Name, ErrServer)
		}
		if err := c.backend.Ready(ctx, c.servers, n); err != nil {
			return fmt.Errorf("%s at %s does not serve: %w: %w", n.Name, n.Address, ErrServer, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.whole(ctx); err != nil {
		return fmt.Errorf("%s: %w: %w", c.spec.Backend, ErrServer, err)
	}
	return nil
}

// whole checks, once, whether the nodes have the right roles and links.
func (c *Cluster) whole(ctx context.Context) error {
	if b, ok := c.backend.(backend.Related); ok {
		return b.Whole(ctx, c.servers)
	}
	return nil
}
