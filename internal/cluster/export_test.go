package cluster

import (
	"context"
)

// Watchers are the servers without data.
func (c *Cluster) Watchers() []*Node { return c.servers.Watchers }

// Serves is nil when a node answers a real request.
func (c *Cluster) Serves(ctx context.Context, node int) error {
	return c.backend.Ready(ctx, c.servers, c.Nodes()[node])
}

// RunDir is the folder of the cluster's run.
func (c *Cluster) RunDir() string { return c.run.Dir() }
