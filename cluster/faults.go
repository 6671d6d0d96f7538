package cluster

import (
	"context"
	"time"
)

// Can says why the servers cannot suffer a fault's action (see
// scenario.FaultKind), or nil.
func (c *Cluster) Can(action string) error { return ErrUnsupported }

// CloseClients asks a node to close its clients' connections, and tells how
// many it closed.
func (c *Cluster) CloseClients(ctx context.Context, node int) (int, error) { return 0, ErrUnsupported }

// SlowDisk makes every fsync of a node take longer by so much, until FastDisk.
func (c *Cluster) SlowDisk(ctx context.Context, node int, by time.Duration) (how string, err error) {
	return "", ErrUnsupported
}

// FastDisk ends SlowDisk.
func (c *Cluster) FastDisk(ctx context.Context, node int) error { return nil }

// SetClock sets a node's wall clock ahead by so much (behind if negative) of
// the machine's; 0 sets it right. The node must have been started for it, see
// Spec.Clock.
func (c *Cluster) SetClock(ctx context.Context, node int, by time.Duration) (how string, err error) {
	return "", ErrUnsupported
}

// Evict fills a node's memory until it has evicted the key, and takes the
// filling out again.
func (c *Cluster) Evict(ctx context.Context, node int, key string) (how string, err error) {
	return "", ErrUnsupported
}

// Flush asks a node to forget everything.
func (c *Cluster) Flush(ctx context.Context, node int) (how string, err error) {
	return "", ErrUnsupported
}
