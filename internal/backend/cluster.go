package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/internal/supervise"
)

// The loopback addresses at which clients find servers, and at which servers find
// one another if their links run through proxies.
const ClientHost, LinkHost = "127.0.0.1", "127.0.0.9"

// Cluster is what a backend's methods know of all servers. Exported fields do
// not change once the servers are started.
type Cluster struct {
	Backend  string
	Topology Topology
	Settings map[string]string // set by the caller
	ReadBack map[string]string // read back from the servers, when all serve
	Binary   Binary
	Clients  int    // connections to allow for
	Dir      string // unique among all clusters

	// Place starts a command where the node belongs.
	Place func(ctx context.Context, n *Node, cmd supervise.Command) (Process, error)
	// ClientNet are the addresses that clients come from.
	ClientNet netip.Prefix

	LinksProxied bool // the links between servers run through proxies
	Kept         bool // a keeper replaces the primary

	Watchers []*Node
	Proxies  []*Node // by node

	mu      sync.Mutex
	nodes   []*Node
	primary atomic.Int32
}

// Nodes in order, as they were started last.
func (c *Cluster) Nodes() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.nodes)
}

// SetNode adds a node, or replaces the one with its index.
func (c *Cluster) SetNode(n *Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.Index == len(c.nodes) {
		c.nodes = append(c.nodes, n)
		return
	}
	c.nodes[n.Index] = n
}

// All are the nodes and the servers with other roles.
func (c *Cluster) All() []*Node { return slices.Concat(c.Nodes(), c.Watchers, c.Proxies) }

// Size is the number of nodes.
func (c *Cluster) Size() int { return len(c.Nodes()) }

// Primary is the index of the node that was made the primary last; 0 at first.
func (c *Cluster) Primary() int { return int(c.primary.Load()) }

// SetPrimary records which node was made the primary.
func (c *Cluster) SetPrimary(index int) { c.primary.Store(int32(index)) }

// Addresses of the servers as clients use them, in node order.
func (c *Cluster) Addresses() []string {
	nodes := c.Nodes()
	if c.Topology.Proxied {
		nodes = c.Proxies
	}
	return addresses(nodes)
}

// Directory lists the addresses of the watchers.
func (c *Cluster) Directory() []string { return addresses(c.Watchers) }

func addresses(nodes []*Node) (list []string) {
	for _, n := range nodes {
		list = append(list, n.Address)
	}
	return list
}

// PeerHost is where other servers and the keeper find a node.
func (c *Cluster) PeerHost(n *Node) string {
	if c.LinksProxied {
		return LinkHost
	}
	return n.Host
}

// Peer is the address at which they find one of its ports.
func (c *Cluster) Peer(n *Node, port int) string { return HostPort(c.PeerHost(n), n.Ports[port]) }

// HostPort is an address with that port.
func HostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// Connections is the limit to set: room for the clients and for lockbench, and
// never less than the server's default.
func (c *Cluster) Connections(byDefault int) int { return max(byDefault, c.Clients+64) }

// Each calls f for every node concurrently, and joins the errors.
func (c *Cluster) Each(f func(i int, n *Node) error) error { return SideBySide(c.Nodes(), f) }

// SideBySide calls f for every node concurrently, and joins the errors.
func SideBySide(nodes []*Node, f func(i int, n *Node) error) error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { errs[i] = f(i, n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Answer is what one node answered.
type Answer[T any] struct {
	Node  *Node
	Value T
}

// Collect asks the nodes that live and are not paused, concurrently, and returns
// their answers in node order. It is ErrNoLeader, with the errors of all, if none
// answers.
func Collect[T any](nodes []*Node, ask func(*Node) (T, error)) ([]Answer[T], error) {
	var (
		mu      sync.Mutex
		answers []Answer[T]
	)
	err := SideBySide(nodes, func(_ int, n *Node) error {
		switch {
		case !n.Alive():
			return fmt.Errorf("%s is dead", n.Name)
		case n.Paused():
			return fmt.Errorf("%s is paused", n.Name)
		}
		value, err := ask(n)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		mu.Lock()
		defer mu.Unlock()
		answers = append(answers, Answer[T]{n, value})
		return nil
	})
	if len(answers) == 0 {
		return nil, fmt.Errorf("%w: %w", ErrNoLeader, err)
	}
	slices.SortFunc(answers, func(a, b Answer[T]) int { return a.Node.Index - b.Node.Index })
	return answers, nil
}

// AwaitAll waits until something holds of the servers together, while all that
// have been started live.
func (c *Cluster) AwaitAll(ctx context.Context, holds func() error) error {
	for {
		err := holds()
		if err == nil {
			return nil
		}
		for _, n := range c.All() {
			if n.Process != nil && !n.Alive() {
				return n.Died()
			}
		}
		timer := time.NewTimer(50 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w (%w)", err, ctx.Err())
		}
	}
}

// Await asks every ten milliseconds until something holds.
func Await(ctx context.Context, holds func() (bool, error)) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if ok, err := holds(); ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// RunOnce runs a program that prepares a node, and waits for it. Its output goes
// to the node's log.
func (c *Cluster) RunOnce(ctx context.Context, n *Node, cmd supervise.Command) error {
	log, err := os.OpenFile(n.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open its log: %w", err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	p, err := c.Place(ctx, n, cmd)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrServer, err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("%s: %w", cmd.Name, ctx.Err()), p.Kill())
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("%w: %w%s", ErrServer, err, n.LastLines())
	}
	return nil
}

// Root reports whether servers need permission to run as root. They must not
// change to another user: the kernel would then forget the signal that
// ends them with lockbench.
func Root() bool { return os.Geteuid() == 0 }
