package backend

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/supervise"
)

var (
	// ErrServer: a server is installed but did not start, or died.
	ErrServer = errors.New("server failed")
	// ErrSpec: the specification asks for something that does not exist or is not
	// allowed.
	ErrSpec = errors.New("no such cluster")
	// ErrNoLeader: no server leads now, or the leader cannot be determined now.
	ErrNoLeader = errors.New("no leader now")
	// ErrUnsupported: servers of this backend and topology cannot do it.
	ErrUnsupported = errors.New("these servers offer no such thing")
	// ErrNotFull: a server that was filled up still accepts writes.
	ErrNotFull = errors.New("the server is not full")
	// ErrNotEvicted: the key is still there, or never was.
	ErrNotEvicted = errors.New("the key was not evicted")
	// ErrNotFenced: the old primary lives, and may accept writes.
	ErrNotFenced = errors.New("the old primary may still take writes")
	// ErrPortTaken: the server found its port in use.
	ErrPortTaken = errors.New("the port was taken by another process")
	// ErrFollower: Counters found that the node applies what another one sends
	// it, and its counters do not separate that from requests of clients.
	ErrFollower = errors.New("a follower")
	// ErrNeedsRestart: BringBack has fenced the node, and its next start makes it
	// a replica.
	ErrNeedsRestart = errors.New("the node has to be started again")
)

// Backend is one kind of lock service.
type Backend interface {
	// Describe returns the facts that need no server. They are constant.
	Describe() Description
	// Find searches the server's program.
	Find(s Search) (Binary, error)
	// Durable reports whether a server with these settings that is killed and
	// started again still has every lock that it granted.
	Durable(settings map[string]string) bool

	// Command writes what the node needs on disk and does not have yet, and
	// returns how to start it. All nodes have their ports by then. A node that is
	// started again finds the data of its last start. Nodes with a Role are
	// started by it too.
	Command(ctx context.Context, c *Cluster, n *Node) (supervise.Command, error)
	// Ready is nil when the node serves requests, and is the one we started. It
	// has to check the identity: another server may have taken the port
	// (ErrPortTaken).
	Ready(ctx context.Context, c *Cluster, n *Node) error
	// Formed is called once, when all nodes are ready: the first requests.
	Formed(ctx context.Context, c *Cluster) error

	// Settings reads the node's settings back, without ports and folders.
	Settings(ctx context.Context, c *Cluster, n *Node) (map[string]string, error)
	// Facts are what node n reports about itself. c.ReadBack is filled by then.
	Facts(ctx context.Context, c *Cluster, n *Node) (Facts, error)
	// Counters are the node's counters of requests since its start, or
	// ErrFollower. Requests that only lockbench sends are left out; those that
	// clients send too are announced by Node.Asked when they are sent.
	Counters(ctx context.Context, c *Cluster, n *Node) (map[string]int64, error)
}

// Description is what is known about a backend without any server.
type Description struct {
	Name       string
	Topologies []Topology // the default first
	Packages   Packages
	Reserved   []string // settings that lockbench sets itself (ports, folders)

	// Unsupported is, by ability (scenario.AbilityKill...), why no servers of this
	// backend have it.
	Unsupported map[string]string
	// Consensus: the servers agree on every grant and write it to disk, so that a
	// restart or a new leader loses no lock.
	Consensus bool
	// MonotonicClock: leases end by a clock that cannot be set.
	MonotonicClock bool
	// IsolatedDisconnects: a server that is cut off from the other servers closes
	// its clients' connections.
	IsolatedDisconnects bool
	// StopLeaderLast: a leader stops sooner once the others have stopped.
	StopLeaderLast bool

	// How plots draw it.
	Color color.NRGBA
	Glyph Glyph
}

// Topology returns the description of a topology.
func (d Description) Topology(name string) (Topology, bool) {
	for _, t := range d.Topologies {
		if t.Name == name {
			return t, true
		}
	}
	return Topology{}, false
}

// Topology is a set of servers in roles.
type Topology struct {
	Name  string
	Nodes []int // allowed numbers of nodes; the first is the default
	Ports int   // of each node, and of each server with a role; the first is the clients'
	Links []Link

	// Watchers are servers without data that report the leader to clients.
	// They are started when the nodes have formed. Their addresses are the
	// cluster's Directory.
	Watchers int
	// Proxied: clients reach each node through a proxy server in front of it (a
	// connection pool), and get the address of that proxy. Proxies are started
	// when the nodes have formed.
	Proxied bool

	Leaderless bool // no server leads the others
	OwnKeys    bool // each server has keys of its own
	Majority   bool // most of the servers decide, and the others can be missed
	Keeper     bool // servers do not replace a primary; lockbench's keeper does
}

// Link is a port at which the servers of a topology call one another.
type Link struct {
	Port int // which of the node's ports
	// CallsBack: the caller sends its own listen address, and the server connects
	// back to it.
	CallsBack bool
	// From is the address that the caller has to be seen at; "" is any.
	From string
	// Awaited is for how long callers try again while the port is closed.
	Awaited time.Duration
}

// Facts are what a running server reports about itself.
type Facts struct {
	Product, Version string
	Durability       string // one line
	Limits           impls.Limits
	Account          impls.Account
}

// Packages are the names under which the server can be installed.
type Packages struct {
	Debian string
	Brew   string
	Build  string // a command that works everywhere, in place of both
}

// Command installs the server on this system.
func (p Packages) Command() string {
	switch {
	case p.Build != "":
		return p.Build
	case runtime.GOOS == "darwin":
		return "brew install " + p.Brew
	}
	return "apt-get install --no-install-recommends " + p.Debian
}

// Glyph is the mark of a backend in plots.
type Glyph int

// The glyphs.
const (
	Square Glyph = iota
	Circle
	Box
	Pyramid
	Diamond
	Ring
	Triangle
)

// SingleOrQuorum are the topologies of servers that agree by majority: one
// server, or three or five whose links are these.
func SingleOrQuorum(singlePorts, quorumPorts int, links ...Link) []Topology {
	return []Topology{
		{Name: "single", Nodes: []int{1}, Ports: singlePorts},
		{Name: "quorum", Nodes: []int{3, 5}, Ports: quorumPorts, Links: links, Majority: true},
	}
}

// NoLeader is the error in a topology whose servers are equals.
func (c *Cluster) NoLeader() error {
	return fmt.Errorf("%w: no server leads the others in a %s %s", ErrUnsupported, c.Backend, c.Topology.Name)
}

// Off reports whether a setting has one of the values that switch it off.
func Off(settings map[string]string, name string) bool {
	return slices.Contains([]string{"no", "false", "0", "off"}, strings.ToLower(settings[name]))
}
