package cluster

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/scenario"
)

// clockTolerance is how far a server's clock may be from the time it was set to,
// beyond the duration of the request: some servers report whole seconds, or read
// their clock once a second.
const clockTolerance = 2 * time.Second

// SetClock sets a node's wall clock ahead of the machine's by this much (behind if
// negative); 0 sets it right. The node's other clocks do not change. SetClock
// returns when the change is in force, which it verifies if the server reports its
// time; how describes the means. A wait under way keeps its length. The clock
// stays as it is when the node is killed and started again; it can be set right
// while the node is dead, and also if it never was wrong. Nodes are counted from 0.
//
// The error is ErrUnsupported if the node was not started for it (see
// Spec.Clock) or uses no clock that can be set, ErrMachine if this machine
// cannot do it; os.ErrProcessDone if the node is dead, ErrSpec, ErrStopped.
func (c *Cluster) SetClock(ctx context.Context, node int, by time.Duration) (how string, err error) {
	n, unlock, err := c.take(ctx, node)
	if err != nil {
		return "", fmt.Errorf("set the clock of a server: %w", err)
	}
	defer unlock()
	if by == 0 {
		how, err = c.rightClock(ctx, n)
	} else {
		how, err = c.wrongClock(ctx, n, by)
	}
	if err != nil {
		return "", fmt.Errorf("set the clock of %s: %w", n.Name, err)
	}
	return how, nil
}

func (c *Cluster) wrongClock(ctx context.Context, n *Node, by time.Duration) (how string, err error) {
	if !n.Alive() {
		return "", os.ErrProcessDone
	}
	if err := Supports(c.spec.Backend, c.spec.Topology, scenario.AbilityClock); err != nil {
		return "", err
	}
	if err := c.shimmed(n); err != nil {
		return "", err
	}
	return c.setClock(ctx, n, by)
}

// rightClock sets a clock right. It does not verify the clock of a dead node.
func (c *Cluster) rightClock(ctx context.Context, n *Node) (how string, err error) {
	if !c.spec.Clock || Supports(c.spec.Backend, c.spec.Topology, scenario.AbilityClock) != nil {
		return "", nil
	}
	if !n.Alive() || c.shimmed(n) != nil {
		return "", withShim(n, func(s *shimState) error { s.ahead.Store(0); return nil })
	}
	return c.setClock(ctx, n, 0)
}

// setClock sets the clock that a living node reads, and asks it.
func (c *Cluster) setClock(ctx context.Context, n *Node, by time.Duration) (how string, err error) {
	err = withShim(n, func(s *shimState) error {
		s.ahead.Store(int64(by))
		read := s.read.Load()
		how = fmt.Sprintf("preloaded library; through it the server has read its clock %d times before", read)
		b, clocked := c.backend.(backend.Clocked)
		if !clocked || n.Paused() {
			return nil
		}
		asked := time.Now()
		clock, err := b.WallClock(ctx, n)
		if err != nil {
			return fmt.Errorf("ask what time it is: %w", err)
		}
		off := clock.Sub(asked.Add(by))
		if off < -clockTolerance || off > clockTolerance+time.Since(asked) {
			return fmt.Errorf("%w: its clock was set %v ahead, and it reports %s, which is %v off", ErrServer, by, clock.UTC().Format(time.RFC3339Nano), off)
		}
		if s.read.Load() == read {
			return fmt.Errorf("%w: it reported its time without reading the clock that was set", ErrServer)
		}
		how += "; it reports " + clock.UTC().Format("2006-01-02 15:04:05 UTC")
		return nil
	})
	return how, err
}
