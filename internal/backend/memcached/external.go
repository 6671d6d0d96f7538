package memcached

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/backend"
)

func (Backend) External() []string { return []string{"single", "sharded"} }

// Identify: a server has no lasting id.
func (Backend) Identify(ctx context.Context, n *backend.Node) (backend.Identity, error) {
	stats, err := askStats(ctx, n, "stats")
	return backend.Identity{Product: "memcached", Version: stats["version"]}, err
}

// Claim does nothing: the names of the run's keys are its own.
func (Backend) Claim(context.Context, *backend.Cluster, string) error { return nil }

// Remove deletes the keys from every server: each key is on one of them.
func (Backend) Remove(ctx context.Context, c *backend.Cluster, _ string, keys []string) error {
	var request strings.Builder
	for _, key := range keys {
		request.WriteString("delete " + key + "\r\n")
	}
	return c.Each(func(_ int, n *backend.Node) error {
		return n.Ask(ctx, request.String(), func(r *bufio.Reader) error {
			for range keys {
				line, err := r.ReadString('\n')
				if err != nil {
					return err
				}
				if line = strings.TrimSpace(line); line != "DELETED" && line != "NOT_FOUND" {
					return fmt.Errorf("it answers a delete by %q", line)
				}
			}
			return nil
		})
	})
}
