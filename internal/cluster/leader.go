package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrNoLeader: nobody leads now, or who does cannot be told now.
var ErrNoLeader = errors.New("no leader now")

// ErrUnsupported: servers of this backend and topology offer no such thing.
var ErrUnsupported = errors.New("these servers offer no such thing")

// leading is a driver whose nodes, in some topology, have a leader.
type leading interface {
	// leader finds the index of the node that leads. The error is ErrNoLeader,
	// or ErrUnsupported in a topology without leaders.
	leader(ctx context.Context, c *Cluster) (int, error)
}

// moving is a driver whose servers hand over the lead when they are asked to.
type moving interface {
	// moveLeader asks them, and returns when they have agreed to. The error is
	// ErrUnsupported in a topology where they cannot.
	moveLeader(ctx context.Context, c *Cluster, from int) error
}

// voteLimit is how long servers that were asked who leads have to answer.
const voteLimit = 2 * time.Second

// Leader tells which node leads now, counted from 0 in the order of Addresses.
// It asks the servers and remembers nothing; whoever leads has to say so itself
// and be confirmed by those who decide it:
//
//   - single: the one node, if it serves;
//   - etcd, zookeeper quorum: the leader that a majority follows;
//   - redis replicated: the master that most sentinels name;
//   - mysql replicated: the one node that takes writes; with a keeper the one
//     that this has chosen, once it takes writes, whatever an old one still does.
//
// The error is ErrNoLeader while there is none, as after the end or the pause of
// one, until the others have agreed on the next; ErrUnsupported where no node
// leads the others. Asking takes up to two seconds if a server does not answer.
func (c *Cluster) Leader(ctx context.Context) (int, error) {
	node, err := c.leader(ctx)
	if err != nil {
		return -1, fmt.Errorf("ask %s who leads: %w", c.spec.Backend, err)
	}
	return node, nil
}

func (c *Cluster) leader(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, voteLimit)
	defer cancel()
	if c.spec.Topology == "single" {
		only := c.Nodes()
		_, err := collect(only, func(n *Node) (int, error) { return 0, c.driver.ready(ctx, c, n) })
		return 0, err
	}
	d, ok := c.driver.(leading)
	if !ok {
		return 0, noLeaders(c)
	}
	return d.leader(ctx, c)
}

// noLeaders is the error in a topology whose nodes are equals.
func noLeaders(c *Cluster) error {
	return fmt.Errorf("%w: nobody leads among the nodes of a %s %s", ErrUnsupported, c.spec.Backend, c.spec.Topology)
}

// Failover asks the servers to hand over the lead while all live, as for
// maintenance, and returns when another node leads: from and to are counted from
// 0. It is redis's SENTINEL FAILOVER and etcd's move of its leader. A redis
// master that is replaced so goes on to take writes, and to lose them, until the
// sentinels make it a replica some ten seconds later.
//
// The error is ErrUnsupported where servers offer no such thing (zookeeper: Kill
// or Pause the leader; mysql: Fence it and Promote another), ErrNoLeader if
// nobody leads before or after.
func (c *Cluster) Failover(ctx context.Context) (from, to int, err error) {
	d, ok := c.driver.(moving)
	if !ok || c.spec.Topology == "single" {
		return -1, -1, fmt.Errorf("move the lead of %s: %w", c.spec.Backend, ErrUnsupported)
	}
	ctx, cancel := c.untilStop(ctx)
	defer cancel()
	if from, err = c.Leader(ctx); err != nil {
		return -1, -1, fmt.Errorf("move the lead: %w", err)
	}
	if err := d.moveLeader(ctx, c, from); err != nil {
		return from, -1, fmt.Errorf("move the lead of %s away from %s: %w", c.spec.Backend, c.Nodes()[from].Name, err)
	}
	for {
		to, err := c.Leader(ctx)
		if err == nil && to != from {
			return from, to, nil
		}
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return from, -1, fmt.Errorf("wait until another than %s leads: %w: %w (%w)", c.Nodes()[from].Name, ErrNoLeader, ctx.Err(), err)
		}
	}
}

// answer is what one node said.
type answer[T any] struct {
	node *Node
	said T
}

// collect asks those nodes that live and are not paused, side by side, and
// returns what they answered, in node order. It is ErrNoLeader, with what each
// said instead, if none answers.
func collect[T any](nodes []*Node, ask func(*Node) (T, error)) ([]answer[T], error) {
	var (
		mu      sync.Mutex
		answers []answer[T]
	)
	err := sideBySide(nodes, func(_ int, n *Node) error {
		switch {
		case !n.alive():
			return fmt.Errorf("%s is dead", n.Name)
		case n.paused():
			return fmt.Errorf("%s is paused", n.Name)
		}
		said, err := ask(n)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		mu.Lock()
		defer mu.Unlock()
		answers = append(answers, answer[T]{n, said})
		return nil
	})
	if len(answers) == 0 {
		return nil, fmt.Errorf("%w: %w", ErrNoLeader, err)
	}
	slices.SortFunc(answers, func(a, b answer[T]) int { return a.node.index - b.node.index })
	return answers, nil
}
