package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/internal/backend"
)

// ErrNowhere: no server has the key.
var ErrNowhere = errors.New("no server has the key")

// WhoHas returns which node has a key, counted from 0, where each key is on one of
// several servers. Nodes that are dead or paused are not asked. The error is
// ErrNowhere if none of those that answer has it, ErrUnsupported where keys have
// no place of their own.
func (c *Cluster) WhoHas(ctx context.Context, key string) (int, error) {
	b, ok := c.backend.(backend.KeyHolder)
	if !ok || !c.servers.Topology.OwnKeys {
		return -1, fmt.Errorf("find %s: %w: all servers of a %s %s have every key, or none", key, ErrUnsupported, c.spec.Backend, c.spec.Topology)
	}
	answers, err := backend.Collect(c.Nodes(), func(n *Node) (bool, error) { return b.Holds(ctx, n, key) })
	if err != nil {
		return -1, fmt.Errorf("find %s: %w", key, err)
	}
	for _, a := range answers {
		if a.Value {
			return a.Node.Index, nil
		}
	}
	return -1, fmt.Errorf("find %s: %w", key, ErrNowhere)
}
