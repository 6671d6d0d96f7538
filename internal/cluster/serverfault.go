package cluster

import (
	"context"
	"fmt"
	"os"
)

// hurt calls f for a living node, which no other call kills, starts or stops
// meanwhile.
func (c *Cluster) hurt(ctx context.Context, verb string, node int, f func(*Node) error) error {
	n, unlock, err := c.take(ctx, node)
	if err != nil {
		return fmt.Errorf("%s a server: %w", verb, err)
	}
	defer unlock()
	if !n.Alive() {
		return fmt.Errorf("%s %s: %w", verb, n.Name, os.ErrProcessDone)
	}
	if err := f(n); err != nil {
		return fmt.Errorf("%s %s: %w", verb, n.Name, err)
	}
	return nil
}
