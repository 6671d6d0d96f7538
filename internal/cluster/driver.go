package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/supervise"
)

// driver is what a backend's file provides. Drivers have no state.
type driver interface {
	topologies() []topology
	// ports is how many ports a node of the topology needs.
	ports(topology string) int
	// reserved are the settings that are ours, and not the caller's.
	reserved() []string
	// find searches a server; override, if given, is what the user named.
	find(s search) (Binary, error)

	// command lays out what the node needs on disk and has not yet, and says
	// how to start it. All nodes have their ports by then. A node that is
	// started again finds the data that its last start left.
	command(ctx context.Context, run *supervise.Run, c *Cluster, n *Node) (supervise.Command, error)
	// ready is nil when the node serves requests, and is the one we started.
	ready(ctx context.Context, c *Cluster, n *Node) error
	// formed is called once, when all nodes are ready: the first requests.
	formed(ctx context.Context, c *Cluster) error

	// settings are read back from the node; those that name ports and folders
	// are left out.
	settings(ctx context.Context, c *Cluster, n *Node) (map[string]string, error)
	// facts are told by node n and by the settings read back.
	facts(ctx context.Context, c *Cluster, n *Node) (facts, error)
	counters(ctx context.Context, c *Cluster, n *Node) (map[string]int64, error)
}

// watched is a driver whose nodes, in some topology, are watched by servers
// without data.
type watched interface {
	// watchers is how many the topology has. They need as many ports as nodes,
	// and are commanded, asked whether they are ready, and asked for their
	// settings as nodes are.
	watchers(topology string) int
}

// related is a driver whose nodes, in some topology, depend on one another in
// ways that ready does not tell.
type related interface {
	// whole is nil when each node has its part, and the others know it.
	whole(ctx context.Context, c *Cluster) error
}

// leaving is a driver whose leader ends sooner once the others have ended.
type leaving interface{ leavesLast() }

// errFollower: counters tells that the node applies what another sends it.
var errFollower = errors.New("a follower")

type topology struct {
	name  string
	nodes []int // allowed; the first is the default
}

// facts are what a server says of itself.
type facts struct {
	product, version string
	durability       string // one line
	limits           impls.Limits
	account          impls.Account
}

func driverOf(backend string) (driver, error) {
	switch backend {
	case "redis":
		return redis{}, nil
	case "etcd":
		return etcd{}, nil
	case "zookeeper":
		return zookeeper{}, nil
	case "memcached":
		return memcached{}, nil
	case "mysql":
		return mysql{}, nil
	}
	return nil, fmt.Errorf("%w: there is no backend %q: choose from %v", ErrSpec, backend, Backends())
}

func singleOrQuorum() []topology {
	return []topology{{"single", []int{1}}, {"quorum", []int{3, 5}}}
}

// connections is the limit to set: room for the clients and for us, and never
// less than what the server allows by itself.
func (c *Cluster) connections(byDefault int) int { return max(byDefault, c.spec.Clients+64) }

// root tells whether servers have to be told that they may run as root. They
// must not change to another user: the kernel then forgets the signal that
// ends them with us.
func root() bool { return os.Geteuid() == 0 }
