package cluster

import (
	"context"
	"errors"
	"testing"

	"github.com/lockbench/lockbench/internal/backend"
)

// A caller waits for a server that another caller changes until its context ends
// or the cluster stops; a free server is taken at once.
func TestTakeWaitsNoLongerThanItsContext(t *testing.T) {
	c := &Cluster{turns: []turn{newTurn()}, servers: &backend.Cluster{}, stopping: make(chan struct{})}
	c.servers.SetNode(&Node{Name: "redis-1"})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	n, unlock, err := c.take(ended, 0)
	if err != nil || n.Name != "redis-1" {
		t.Fatalf("a free one: %v", err)
	}
	if _, _, err := c.take(ended, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("one in use: %v", err)
	}
	waits := make(chan error, 2)
	for _, ctx := range []context.Context{t.Context(), t.Context()} {
		go func() {
			_, unlock, err := c.take(ctx, 0)
			if err == nil {
				defer unlock()
			}
			waits <- err
		}()
	}
	unlock()
	for range 2 { // one after the other
		if err := <-waits; err != nil {
			t.Errorf("once it is free: %v", err)
		}
	}

	_, unlock, err = c.take(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _, err := c.take(t.Context(), 0)
		waits <- err
	}()
	close(c.stopping)
	if err := <-waits; !errors.Is(err, ErrStopped) {
		t.Errorf("of a cluster that was stopped: %v", err)
	}
	unlock()
	if _, _, err := c.take(t.Context(), 0); !errors.Is(err, ErrStopped) {
		t.Errorf("a free one of it: %v", err)
	}
}
