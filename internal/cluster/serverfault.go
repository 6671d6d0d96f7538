package cluster

import (
	"context"
	"fmt"
	"os"
	"sync"
)

// hurt calls f for a living node, which nobody kills, starts or stops meanwhile.
func (c *Cluster) hurt(ctx context.Context, verb string, node int, f func(*Node) error) error {
	n, unlock, err := c.take(ctx, node)
	if err != nil {
		return fmt.Errorf("%s a server: %w", verb, err)
	}
	defer unlock()
	if !n.alive() {
		return fmt.Errorf("%s %s: %w", verb, n.Name, os.ErrProcessDone)
	}
	if err := f(n); err != nil {
		return fmt.Errorf("%s %s: %w", verb, n.Name, err)
	}
	return nil
}

// awake is nil unless the node is paused. Who waited for its answer would keep it
// from being resumed meanwhile.
func (n *Node) awake() error {
	if n.paused() {
		return fmt.Errorf("%w: it is paused; Resume it first", ErrUnsupported)
	}
	return nil
}

// asked counts what we asked a server for our faults' sake, by the names of its
// counters.
type asked struct {
	mu     sync.Mutex
	counts map[string]int64
}

func (a *asked) add(name string, n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts == nil {
		a.counts = map[string]int64{}
	}
	a.counts[name] += n
}

// takeOff leaves what clients asked.
func (a *asked) takeOff(counters map[string]int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, n := range a.counts {
		if _, counted := counters[name]; counted {
			counters[name] -= n
		}
	}
}

// fillerPrefix is before the names of the keys that we put into a server.
const fillerPrefix = "lockbench-filler-"
