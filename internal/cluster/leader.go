package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/backend"
)

// voteLimit is how long servers have to answer which of them leads.
const voteLimit = 2 * time.Second

// Leader returns which node leads now, counted from 0 in the order of Nodes. It
// asks the servers and remembers nothing; the leader has to report that it leads,
// and to be confirmed by those that decide it (see the Leader of each backend).
// Of the topology single it is the one node, if it serves.
//
// The error is ErrNoLeader while there is none, as after the end or the pause of
// one, until the others have agreed on the next; ErrUnsupported where no node
// leads the others. Asking takes up to two seconds if a server does not answer.
func (c *Cluster) Leader(ctx context.Context) (int, error) {
	node, err := c.leader(ctx)
	if err != nil {
		return -1, fmt.Errorf("ask %s for its leader: %w", c.spec.Backend, err)
	}
	return node, nil
}

func (c *Cluster) leader(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, voteLimit)
	defer cancel()
	if nodes := c.Nodes(); len(nodes) == 1 {
		_, err := backend.Collect(nodes, func(n *Node) (int, error) { return 0, c.backend.Ready(ctx, c.servers, n) })
		return 0, err
	}
	b, ok := c.backend.(backend.Led)
	if !ok {
		return 0, c.servers.NoLeader()
	}
	return b.Leader(ctx, c.servers)
}

// Failover asks the servers to hand over the lead while all live, as for
// maintenance, and returns when another node leads: from and to are counted from
// 0.
//
// The error is ErrUnsupported where servers have no command for it, ErrNoLeader if
// no node leads before or after.
func (c *Cluster) Failover(ctx context.Context) (from, to int, err error) {
	b, ok := c.backend.(backend.LeadMover)
	if !ok || c.spec.Nodes == 1 {
		return -1, -1, fmt.Errorf("move the lead of %s: %w", c.spec.Backend, ErrUnsupported)
	}
	ctx, cancel := c.untilStop(ctx)
	defer cancel()
	if from, err = c.Leader(ctx); err != nil {
		return -1, -1, fmt.Errorf("move the lead: %w", err)
	}
	if err := b.MoveLeader(ctx, c.servers, from); err != nil {
		return from, -1, fmt.Errorf("move the lead of %s away from %s: %w", c.spec.Backend, c.Nodes()[from].Name, err)
	}
	for {
		to, err := c.Leader(ctx)
		if err == nil && to != from {
			return from, to, nil
		}
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return from, -1, fmt.Errorf("wait until another node than %s leads: %w: %w (%w)", c.Nodes()[from].Name, ErrNoLeader, ctx.Err(), err)
		}
	}
}
