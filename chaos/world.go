package chaos

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/internal/faultnet"
)

// ErrEquals: these servers never have a leader.
var ErrEquals = errors.New("the servers are equals without a leader")

// Servers is what the schedule needs of a scenario's servers. Nodes are counted
// from 0. Its methods are safe for concurrent use, and return soon after their
// context has ended; each of those that inject is undone by the one named beside
// it, which is safe to call when there is nothing to undo.
type Servers interface {
	// Nodes lists the servers by name and address.
	Nodes() []NodeName
	// Leader returns the current leader; of a single server that serves, that
	// one. The error is ErrEquals if the servers never have a leader, any other
	// if none leads now.
	Leader(ctx context.Context) (int, error)
	// Healthy answers nil when all servers serve, and stand to one another as
	// they should.
	Healthy(ctx context.Context) error
	// Process is the process of a node, for the journal; nil if there is none
	// that could be signalled.
	Process(node int) Process
	// Can returns why these servers lack an ability (scenario.AbilityKill...),
	// or nil.
	Can(ability string) error

	// Kill ends a node as a crash does; Restart starts it again, with its data,
	// and returns when it serves.
	Kill(ctx context.Context, node int) error
	Restart(ctx context.Context, node int) error
	// Pause stops a node, confirmed, by PausedBy; Resume lets it go on.
	Pause(ctx context.Context, node int) error
	PausedBy() string
	Resume(ctx context.Context, node int) error
	// Move asks the servers to hand over the lead.
	Move(ctx context.Context) (from, to int, err error)

	// CutLinks puts a rule on all links between the nodes of side and all other
	// servers (those that watch them too), under id, until LiftLinks.
	CutLinks(ctx context.Context, id string, side []int, rule faultnet.Rule) (how string, err error)
	LiftLinks(ctx context.Context, id string) (faultnet.Effect, error)

	// CloseClients makes a node close its clients' connections, and returns how
	// many it closed.
	CloseClients(ctx context.Context, node int) (int, error)
	// SlowDisk makes every fsync of a node take longer by so much, until
	// FastDisk.
	SlowDisk(ctx context.Context, node int, by time.Duration) (how string, err error)
	FastDisk(ctx context.Context, node int) error
	// SetClock sets a node's wall clock ahead by so much (behind if negative) of
	// the machine's; 0 sets it right.
	SetClock(ctx context.Context, node int, by time.Duration) (how string, err error)
	// Evict fills a node's memory until it has evicted the key, and takes the
	// filling out again. It returns an error if the key is still there.
	Evict(ctx context.Context, node int, key string) (how string, err error)
	// Fill takes a node's room away, until Drain, and returns when it has refused
	// a write.
	Fill(ctx context.Context, node int) (how string, err error)
	Drain(ctx context.Context, node int) error
	// Flush asks a node to forget everything.
	Flush(ctx context.Context, node int) (how string, err error)
}

// NodeName is one server.
type NodeName struct{ Name, Address string }

// Wires reaches what lies between clients and servers, and the clients' clocks.
// Its methods are safe for concurrent use, and return soon after their context
// has ended.
type Wires interface {
	// Apply puts a rule between clients and addresses (none of either: all of
	// them), under id, and returns when it is in force. how names the
	// mechanism. An id that was lifted may be used again. For a cut-kill the
	// client's process stands still while Apply is called, so that its answer
	// cannot be waited for.
	Apply(ctx context.Context, id string, clients []uint32, addresses []string, rule faultnet.Rule) (how string, err error)
	// Lift removes the rule that Apply put, and returns its effect. Clients that
	// are dead by now need not answer.
	Lift(ctx context.Context, id string) (faultnet.Effect, error)
	// Peers are the addresses that a client is connected to now.
	Peers(ctx context.Context, client uint32) ([]string, error)
	// Skew sets a client's clock ahead by so much (behind if negative) of the
	// machine's; 0 sets it right.
	Skew(ctx context.Context, client uint32, by time.Duration) error
}

// Journal lists, where it survives this process, the faults to heal if this
// process dies.
type Journal interface {
	// Begin notes a fault before it is injected: what it is, and which processes
	// it leaves stopped. The error forbids the injection.
	Begin(id, what string, stopped ...Process) error
	// End notes that it is healed.
	End(id string) error
}
