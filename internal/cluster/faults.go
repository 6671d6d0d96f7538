package cluster

import (
	"cmp"
	"context"
	"fmt"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/scenario"
)

// CloseClients asks a node to close its clients' connections, those that wait
// for messages too, and returns how many it closed when they are closed.
// Connections of other servers and of lockbench itself stay. Nodes are counted
// from 0.
//
// The error is ErrUnsupported where servers have no command for it, or while the
// node is paused; os.ErrProcessDone if the node is dead, ErrSpec, ErrStopped.
func (c *Cluster) CloseClients(ctx context.Context, node int) (closed int, err error) {
	err = c.hurt(ctx, "close the clients' connections of", node, func(n *Node) error {
		if err := cmp.Or(Supports(c.spec.Backend, c.spec.Topology, scenario.AbilityClose), n.Awake()); err != nil {
			return err
		}
		ctx, cancel := c.untilStop(ctx)
		defer cancel()
		closed, err = c.backend.(backend.ClientCloser).CloseClients(ctx, c.servers, n)
		return err
	})
	return closed, err
}

// Evict fills a node's memory until it has evicted the key, and removes the
// fillers. Other keys may be evicted before it; how describes the means (see the
// Evict of each backend). Nodes are counted from 0.
//
// The error is ErrNotEvicted if the key is there still or never was,
// ErrUnsupported if these servers never evict, or while the node is paused;
// os.ErrProcessDone if the node is dead, ErrSpec, ErrStopped.
func (c *Cluster) Evict(ctx context.Context, node int, key string) (how string, err error) {
	err = c.hurt(ctx, "have a key evicted by", node, func(n *Node) error {
		if err := cmp.Or(c.spec.Supports(scenario.AbilityEvict), n.Awake()); err != nil {
			return err
		}
		how, err = c.backend.(backend.Evicter).Evict(ctx, c.servers, n, key)
		return err
	})
	return how, err
}

// Flush makes a node delete everything, and returns when it has: a key of ours
// that was there is gone. Nodes are counted from 0.
//
// The error is ErrUnsupported where servers have no command for it, or while the
// node is paused; os.ErrProcessDone if the node is dead, ErrSpec, ErrStopped.
func (c *Cluster) Flush(ctx context.Context, node int) (how string, err error) {
	err = c.hurt(ctx, "flush", node, func(n *Node) error {
		if err := cmp.Or(Supports(c.spec.Backend, c.spec.Topology, scenario.AbilityFlush), n.Awake()); err != nil {
			return err
		}
		b, marker := c.backend.(backend.Flusher), backend.FillerPrefix+"mark"
		if err := b.Put(ctx, n, marker); err != nil {
			return err
		}
		if how, err = b.Flush(ctx, n); err != nil {
			return err
		}
		still, err := b.Holds(ctx, n, marker)
		if err == nil && still {
			err = fmt.Errorf("%w: it kept a key through %s", ErrServer, how)
		}
		return err
	})
	return how, err
}
