package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Healthy returns nil when every server lives and answers a real request, and
// the servers stand to one another as at the start: replicas are linked to one
// leader, and whoever watches them agrees on it. A server that is dead or
// paused is ErrServer, with its last log lines.
func (c *Cluster) Healthy(ctx context.Context) error {
	err := sideBySide(slices.Concat(c.Nodes(), c.watchers), func(_ int, n *Node) error {
		if !n.alive() {
			return n.died()
		}
		if n.paused() {
			return fmt.Errorf("%s: %w: it is paused; Resume it", n.Name, ErrServer)
		}
		if err := c.driver.ready(ctx, c, n); err != nil {
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

// whole asks, once, whether the nodes stand to one another as they should.
func (c *Cluster) whole(ctx context.Context) error {
	if d, ok := c.driver.(related); ok {
		return d.whole(ctx, c)
	}
	return nil
}

// awaitAll asks again and again whether something holds of the nodes together,
// while all that have been started live.
func (c *Cluster) awaitAll(ctx context.Context, holds func() error) error {
	for {
		err := holds()
		if err == nil {
			return nil
		}
		for _, n := range slices.Concat(c.Nodes(), c.watchers) {
			if n.Process != nil && !n.alive() {
				return n.died()
			}
		}
		timer := time.NewTimer(50 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w (%w)", err, ctx.Err())
		}
	}
}
