package backend

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// Led is a backend with a topology in which one node leads.
type Led interface {
	// Leader finds the index of the leading node, by asking the servers. The
	// error is ErrNoLeader, or ErrUnsupported in a topology without leaders.
	Leader(ctx context.Context, c *Cluster) (int, error)
}

// LeadMover is a backend whose servers hand over the lead on request.
type LeadMover interface {
	// MoveLeader returns when the servers have agreed to do so. The error is
	// ErrUnsupported in a topology where they cannot.
	MoveLeader(ctx context.Context, c *Cluster, from int) error
}

// Elector is a backend whose servers elect another leader.
type Elector interface {
	// Election is how long that may take by the settings read back from the
	// servers, and how this was computed; 0 if they do not show it.
	Election(settings map[string]string) (within time.Duration, from string)
}

// Related is a backend with a topology whose nodes depend on one another in ways
// that Ready does not cover.
type Related interface {
	// Whole is nil when each node has its role, and the others know it.
	Whole(ctx context.Context, c *Cluster) error
}

// Promoter is a backend whose servers leave it to others which of them accepts
// writes. Calls never overlap. In a topology without primary the methods do
// nothing, or return ErrUnsupported.
type Promoter interface {
	// Promote makes n the node that accepts writes, and calls c.SetPrimary. With
	// fenced, only if the old primary is known to accept none (ErrNotFenced).
	Promote(ctx context.Context, c *Cluster, n *Node, fenced bool) error
	// Fence makes n reject writes.
	Fence(ctx context.Context, c *Cluster, n *Node) error
	// Rejoin gives a node that was started again its role.
	Rejoin(ctx context.Context, c *Cluster, n *Node) error
}

// Supervised is a backend with a topology (Topology.Keeper) whose primary is
// replaced by lockbench's keeper.
type Supervised interface {
	Promoter
	// Misplaced returns why a node is not a replica of primary; "" if it is.
	Misplaced(ctx context.Context, c *Cluster, n, primary *Node) (string, error)
	// BringBack makes the node a replica, and returns what was done. Its clients'
	// connections end. With ErrNeedsRestart the keeper kills the node and starts it
	// again.
	BringBack(ctx context.Context, c *Cluster, n, primary *Node) (string, error)
	// Answers is nil when a node answers a real request.
	Answers(ctx context.Context, c *Cluster, n *Node) error
}

// ClientCloser is a backend whose servers have a command that closes clients'
// connections.
type ClientCloser interface {
	// CloseClients closes the connections of clients, not those of other servers
	// or lockbench, and returns how many when they are closed.
	CloseClients(ctx context.Context, c *Cluster, n *Node) (closed int, err error)
}

// Evicter is a backend whose servers evict keys when their memory is full.
type Evicter interface {
	// Evict fills the node until it has evicted the key, and removes the fillers.
	// The error is ErrNotEvicted if the key is still there or never was.
	Evict(ctx context.Context, c *Cluster, n *Node, key string) (how string, err error)
}

// Flusher is a backend whose servers have a command that deletes everything.
type Flusher interface {
	KeyHolder
	// Flush deletes everything; how names the command.
	Flush(ctx context.Context, n *Node) (how string, err error)
	// Put stores a key of lockbench's own.
	Put(ctx context.Context, n *Node, key string) error
}

// KeyHolder is a backend whose servers can be asked for a key.
type KeyHolder interface {
	Holds(ctx context.Context, n *Node, key string) (bool, error)
}

// Filler is a backend whose servers reject writes at a limit of their space.
type Filler interface {
	// Fill returns when a write of ours was rejected for lack of space; how describes
	// how this was done. After an error Drain is called too.
	Fill(ctx context.Context, c *Cluster, n *Node) (how string, err error)
	// Drain makes space again, if there is none, and returns when there is. The
	// node may be dead.
	Drain(ctx context.Context, c *Cluster, n *Node) error
}

// Clocked is a backend whose servers report their wall clock.
type Clocked interface {
	WallClock(ctx context.Context, n *Node) (time.Time, error)
}

// Limited is a backend whose settings limit which TTLs it serves.
type Limited interface {
	// Limits of servers that run with these settings.
	Limits(settings map[string]string) impls.Limits
}

// Selective is a backend that has some abilities with certain settings only.
type Selective interface {
	// UnsupportedWith returns why servers with these settings lack an ability
	// (scenario.AbilityKill...); "" if they have it.
	UnsupportedWith(settings map[string]string, ability string) string
}

// Requiring is a backend with a topology that needs more than its server.
type Requiring interface {
	// Require returns what a topology lacks with this program: a *MissingError,
	// or nil.
	Require(b Binary, topology string) error
}

// Guest is a backend that lockbench can use on servers that it did not start:
// their nodes have an Access and no process.
type Guest interface {
	// External lists the topologies for which that is possible.
	External() []string
	// Identify logs in to a server and reads what it is.
	Identify(ctx context.Context, n *Node) (Identity, error)
	// Claim prepares the place in which the run's clients work; it fails where
	// another run uses it.
	Claim(ctx context.Context, c *Cluster, run string) error
	// Remove removes everything that the run and its clients of keys left.
	Remove(ctx context.Context, c *Cluster, run string, keys []string) error
}

// Marker is the key or the table by which the owner of external servers permits
// faults on them. lockbench never creates it.
const Marker = "allow_lockbench_faults"

// SessionCloser is a guest whose servers list the connections of clients, and can
// be asked to close some of them.
type SessionCloser interface {
	Guest
	// Sessions lists all connections of clients, without the one that asks and
	// those of other servers. It fails if the account may not see all of them.
	Sessions(ctx context.Context, n *Node) ([]Session, error)
	// CloseSessions asks the server to close connections by their ids, and returns
	// how many it accepted to close.
	CloseSessions(ctx context.Context, n *Node, ids []string) (closed int, err error)
	// Marked reports whether the server has the Marker.
	Marked(ctx context.Context, n *Node) (bool, error)
}

// Session is a client's connection to a server.
type Session struct {
	ID   string
	From string // the user and the host, as the server reports them
	Own  bool   // the same user and host as those of the connection that asks
}

// Identity is what a server reports about itself. What it does not is empty.
type Identity struct {
	Product, Version string
	ID               string // of the server or its cluster, the same for good
	ReadOnly         string // why it would reject writes; "": it accepts them
}
