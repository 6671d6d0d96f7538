package impls

import (
	"context"
	"net"
	"slices"
	"time"

	"github.com/lockbench/lockbench/history"
)

// Attempt is the owner id of one attempt to acquire; see history.Attempt. The
// caller draws a new one for every acquire, and records it before the call.
type Attempt = history.Attempt

// Recipe is one way to build a lock on a backend. It is a value without
// state; all state is in the clients that it opens.
type Recipe interface {
	// Info describes the recipe. It is constant.
	Info() Info

	// CheckTTL tells why the backend cannot serve ttl under lim, or nil.
	CheckTTL(ttl time.Duration, lim Limits) error

	// Prepare brings the servers into the state that clients expect: tables
	// and rows, parent nodes, loaded scripts. It is called once per scenario,
	// before any client is opened, with every key that will be used, and may
	// be called again.
	Prepare(ctx context.Context, cfg Config, keys []string) error

	// Open connects one client. Each has a driver instance of its own.
	Open(ctx context.Context, cfg Config) (Client, error)
}

// Client is one user of locks. Its methods are called by one goroutine at a
// time; a client holds at most one lock of a key at once, unless it is
// Reentrant.
//
// Errors name their outcome by errors.Is; see Outcome.
type Client interface {
	// Acquire waits until key is held, or until ctx ends. When ctx ends while
	// something was sent whose effect is open, the error is ErrUnknown and the
	// caller owes a Cleanup.
	Acquire(ctx context.Context, key string, a Attempt) (Hold, error)

	// TryAcquire asks once: held, or ErrBusy.
	TryAcquire(ctx context.Context, key string, a Attempt) (Hold, error)

	// Cleanup removes whatever attempt a left behind on key: nil if it had
	// the lock, or a place in its queue, and now has not; ErrLost if nothing
	// of it was there; else unknown. The caller repeats it, with a fresh ctx,
	// until the answer is definite or its patience ends.
	Cleanup(ctx context.Context, key string, a Attempt) error

	// Close frees the client's connections and stops its background work. It
	// does not release locks.
	Close() error
}

// Hold is one acquisition. Lost may be used by any goroutine, the rest by the
// client's own.
type Hold interface {
	Key() string
	Attempt() Attempt

	// Fence is the fencing token, a number greater than that of every earlier
	// grant of the key, or 0 if the recipe has none.
	Fence() uint64

	// LeaseEnd is the time until which this client may trust that it holds
	// the lock, by the Monotonic time of the clock it was opened with, counted
	// from before the request was sent: setting that clock does not move it,
	// renewals do. The zero time means that the recipe cannot tell (its bound is
	// a connection, or the driver hides it).
	LeaseEnd() time.Time

	// Lost is closed when the lock told the client that the hold is gone, or
	// may be (the session expired, the connection broke). It never fires
	// merely because LeaseEnd passed: whether to watch that is the user's
	// choice. It may be nil if the recipe cannot tell.
	Lost() <-chan struct{}

	// Extend renews the lease for another TTL: nil, ErrLost if it was no
	// longer ours, ErrUnknown, or errors.ErrUnsupported where the recipe
	// renews by itself or has no lease.
	Extend(ctx context.Context) error

	// Release frees the lock if it is still this attempt's: nil, ErrLost if
	// it was no longer ours, else unknown. After a definite answer a second
	// call answers ErrLost without sending anything; after a doubt it may ask
	// again.
	Release(ctx context.Context) error
}

// Bound is what ends a hold whose owner vanished.
type Bound string

// The bounds. Recipes bound by TTL or Session are the leased ones.
const (
	BoundTTL        Bound = "ttl"        // a lease by the server's clock
	BoundSession    Bound = "session"    // a lease kept alive in the background
	BoundConnection Bound = "connection" // the server sees the connection end
	BoundNone       Bound = "none"       // nothing: it is held until somebody releases it
)

// Leased reports whether a hold may end while its owner lives but is silent.
func (b Bound) Leased() bool { return b == BoundTTL || b == BoundSession }

// Info describes a recipe.
type Info struct {
	ID       string // "redis/token": backend, slash, name
	Backend  string // "redis"
	Summary  string // one line: the primitives used
	Promise  string // one line: what it promises, and on which conditions
	Document string // where the recipe comes from
	Bound    Bound
	// Fails tells, in a line, how it is known to fail; "" for a recipe that
	// keeps its promise as long as the promise's own conditions are met.
	Fails string
	// Properties lists the properties that it promises. Those it does not list it
	// promises not to have: conformance takes either for a promise.
	Properties []Property
	// Steps are its named steps in the order in which a call comes to them,
	// besides StepWaiting and StepWoken; StepRenewing, to which no call comes,
	// is the last.
	Steps []Step
	// Broken marks a control that is wrong on purpose, and must be caught.
	Broken bool

	// Fencing tells whether holds carry a fencing token. See FencedOn.
	Fencing bool
	// Unfenced lists those of the topologies on which the token is not sound: a
	// failover there can turn it back, so that a later grant has the number of
	// an earlier one, or a lower one.
	Unfenced []string
	// Polls tells whether waiting follows the wait policy; otherwise the
	// server wakes the waiter.
	Polls bool
	// Topologies on which the recipe may be run.
	Topologies []string
	// AvailableOn lists those of them on which it is Available though it is not by
	// itself: the servers replace one that is lost by another.
	AvailableOn []string
	// GrantsPerServer lists those of them on which each server grants the lock by itself, so
	// that clients of two servers hold it at once: there it does not keep its
	// promise.
	GrantsPerServer []string
	// RoundTrips of an uncontended acquire and release, together, on a warm
	// connection.
	RoundTrips int
	// Requests names the server counters that count requests this recipe's
	// clients send for locks: not what scripts call inside the server, and
	// not what keeps a session alive, which costs by the time and not by the
	// acquire. See cluster.Counters. A name that ends in * matches by prefix.
	Requests []string
	// Takeover bounds the time from the death of a holder to the next grant
	// while somebody waits, for a TTL; without the wait policy's interval. It is
	// nil if the bound is BoundNone: then nobody need ever be granted it.
	Takeover func(ttl time.Duration) time.Duration `json:"-"`
	// DetectionTimeout bounds how long a client may go on sending requests to a server
	// that fell silent and whose connections live, before it is done with it for
	// good, for a TTL and the limit of a request. It is nil where each request
	// finds its way to others within Takeover.
	DetectionTimeout func(ttl, timeout time.Duration) time.Duration `json:"-"`
}

// FencedOn reports whether holds carry a fencing token on a topology that grows
// with every grant, whatever fails there that the topology is built to survive.
func (i Info) FencedOn(topology string) bool {
	return i.Fencing && !slices.Contains(i.Unfenced, topology)
}

// Limits are the servers' settings that decide which TTLs can be served.
type Limits struct {
	TickTime        time.Duration // ZooKeeper's tick; sessions last 2 to 20 of them
	ElectionTimeout time.Duration // etcd's; leases last at least 1.5 of it, in whole seconds
}

// DefaultLimits are those of servers with production defaults.
func DefaultLimits() Limits {
	return Limits{TickTime: 2 * time.Second, ElectionTimeout: time.Second}
}

// Config is what a client is opened with. Addresses, Dial, Clock, Wait, TTL and
// Timeout are required.
type Config struct {
	Addresses []string // host:port of each server, in node order; a path for reference recipes
	Topology  string   // of the servers: single, quorum...; "": single, or what the recipe takes several addresses for
	// Directory has the addresses of those that tell where the leader is (the
	// sentinels of a replicated redis).
	Directory []string
	Account   Account
	// Number is the client's, among those of a scenario: of several servers that
	// are as good as one another each client begins with the one of its number.
	Number int
	Dial   DialFunc
	Clock  Clock
	Wait   WaitPolicy
	TTL    time.Duration
	// Timeout limits one request on the wire, apart from waiting for a lock.
	Timeout time.Duration
	// Steps, if not nil, is told when a call comes to a named step.
	Steps Steps
	// Renewals, if not nil, is told of what keeps leases alive behind the
	// client's back.
	Renewals Renewals
	// Shared, if not nil, is what the clients of one process have in common:
	// a recipe that draws its connections from a pool draws them from there.
	Shared *Shared
}

// Account is how to log in where the backend wants it (mysql).
type Account struct {
	User, Password, Database string
}

// DialFunc opens a connection; drivers dial through it and nothing else.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Clock is a client's time. See Monotonic for what passes evenly.
type Clock interface {
	// Now is the client's time, with a monotonic reading unless skewed.
	Now() time.Time
	// Sleep waits d, or until ctx ends and returns its error.
	Sleep(ctx context.Context, d time.Duration) error
	// AfterFunc calls f in a goroutine of its own after d; stop tells whether
	// it came before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// WaitPolicy says how long a polling recipe waits before it asks again. A
// client's policy is its own, so an implementation need not be safe for
// concurrent use.
type WaitPolicy interface {
	Next() time.Duration
	String() string // "5ms..15ms": printed beside every contended number
}
