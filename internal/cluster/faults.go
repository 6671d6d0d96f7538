package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/internal/scenario"
)

// ErrNotEvicted: the key is there still, or never was.
var ErrNotEvicted = errors.New("the key was not evicted")

// closing is a driver whose servers close their clients' connections when they
// are asked to.
type closing interface {
	closeClients(ctx context.Context, c *Cluster, n *Node) (int, error)
}

// forgetful is a driver whose servers evict what does not fit into their memory,
// and forget everything when they are asked to.
type forgetful interface {
	evict(ctx context.Context, c *Cluster, n *Node, key string) (how string, err error)
	// flush makes the server forget everything; how names the command.
	flush(ctx context.Context, n *Node) (how string, err error)
	// put stores a key of ours, and holds tells whether it is there.
	put(ctx context.Context, n *Node, key string) error
	holds(ctx context.Context, n *Node, key string) (bool, error)
}

// CloseClients asks a node to close its clients' connections, those that wait
// for messages too, and returns how many it closed when they are closed.
// Connections of other servers and of lockbench itself stay. Nodes are counted
// from 0.
//
// The error is ErrUnsupported where servers have no command for it, or while the
// node is paused; os.ErrProcessDone if the node is dead, ErrSpec, ErrStopped.
func (c *Cluster) CloseClients(ctx context.Context, node int) (closed int, err error) {
	err = c.hurt(ctx, "close the clients' connections of", node, func(n *Node) error {
		if err := cmp.Or(Supports(c.spec.Backend, c.spec.Topology, scenario.AbilityClose), n.awake()); err != nil {
			return err
		}
		closed, err = c.driver.(closing).closeClients(ctx, c, n)
		return err
	})
	return closed, err
}

// Evict fills a node's memory until it has evicted the key, as it does with what
// it needs least, and takes the filling out again. Other keys may go the same
// way before it. A redis without a limit of its own gets one for that time, and
// the policy volatile-lru unless its settings name another; how tells both.
// Nodes are counted from 0.
//
// The error is ErrNotEvicted if the key is there still or never was,
// ErrUnsupported if these servers never evict, or while the node is paused;
// os.ErrProcessDone if the node is dead, ErrSpec, ErrStopped.
func (c *Cluster) Evict(ctx context.Context, node int, key string) (how string, err error) {
	err = c.hurt(ctx, "have a key evicted by", node, func(n *Node) error {
		if err := cmp.Or(c.spec.Suffers(scenario.AbilityEvict), n.awake()); err != nil {
			return err
		}
		how, err = c.driver.(forgetful).evict(ctx, c, n, key)
		return err
	})
	return how, err
}

// Flush asks a node to forget everything, and returns when it has: a key of ours
// that was there is gone. Nodes are counted from 0.
//
// The error is ErrUnsupported where servers have no command for it, or while the
// node is paused; os.ErrProcessDone if the node is dead, ErrSpec, ErrStopped.
func (c *Cluster) Flush(ctx context.Context, node int) (how string, err error) {
	err = c.hurt(ctx, "flush", node, func(n *Node) error {
		if err := cmp.Or(Supports(c.spec.Backend, c.spec.Topology, scenario.AbilityFlush), n.awake()); err != nil {
			return err
		}
		d, marker := c.driver.(forgetful), fillerPrefix+"mark"
		if err := d.put(ctx, n, marker); err != nil {
			return err
		}
		if how, err = d.flush(ctx, n); err != nil {
			return err
		}
		still, err := d.holds(ctx, n, marker)
		if err == nil && still {
			err = fmt.Errorf("%w: it kept a key through %s", ErrServer, how)
		}
		return err
	})
	return how, err
}
