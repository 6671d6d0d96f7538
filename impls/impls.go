package impls

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"time"

	"github.com/lockbench/lockbench/history"
)

// Attempt is the owner id of one attempt to acquire; see history.Attempt. The
// caller draws a new one for every acquire, and records it before the call.
type Attempt = history.Attempt

// Recipe is one way to build a lock on a backend. It is a value without state;
// all state is in its clients.
type Recipe interface {
	// Info describes the recipe. It is constant.
	Info() Info

	// CheckTTL returns why the backend cannot serve ttl under lim, or nil.
	CheckTTL(ttl time.Duration, lim Limits) error

	// Prepare brings the servers into the state that clients expect: tables and
	// rows, parent nodes, loaded scripts. It is called once per scenario,
	// before any client is opened, with every key that will be used, and may be
	// called again.
	Prepare(ctx context.Context, cfg Config, keys []string) error

	// Open connects one client, with a driver instance of its own.
	Open(ctx context.Context, cfg Config) (Client, error)
}

// Client is one user of locks. Its methods are called by one goroutine at a
// time; it holds at most one lock of a key at once, unless it is Reentrant.
//
// Errors name their outcome by errors.Is; see Outcome.
type Client interface {
	// Acquire waits until key is held, or until ctx ends. If ctx ends after a
	// request whose effect is unknown, the error is ErrUnknown and the caller
	// must call Cleanup.
	Acquire(ctx context.Context, key string, a Attempt) (Hold, error)

	// TryAcquire sends one request: held, or ErrBusy.
	TryAcquire(ctx context.Context, key string, a Attempt) (Hold, error)

	// Cleanup removes everything that attempt a left on key: nil if the attempt
	// had the lock or a place in its queue, ErrLost if it had nothing, else
	// unknown. The caller repeats it, with a fresh ctx, until the answer is
	// definite or the caller gives up.
	Cleanup(ctx context.Context, key string, a Attempt) error

	// Close closes the client's connections and stops its background work. It
	// does not release locks.
	Close() error
}

// Hold is one acquisition. Lost may be used by any goroutine, the rest by the
// client's own.
type Hold interface {
	Key() string
	Attempt() Attempt

	// Fence is the fencing token, greater than that of every earlier grant of
	// the key, or 0 if the recipe has none.
	Fence() uint64

	// LeaseEnd is the time until which this client may rely on the lock, by the
	// Monotonic time of its clock, counted from before the request was sent:
	// setting that clock does not move it, renewals do. The zero time means
	// that the recipe does not know it (its bound is a connection, or the
	// driver hides it).
	LeaseEnd() time.Time

	// Lost is closed when the lock signals that the hold is lost, or may be
	// (the session expired, the connection broke). It is not closed just
	// because LeaseEnd passed: callers decide whether to watch that. It may be
	// nil if the recipe has no signal.
	Lost() <-chan struct{}

	// Extend renews the lease for another TTL: nil, ErrLost if the attempt no
	// longer had the lock, ErrUnknown, or errors.ErrUnsupported if the recipe
	// renews by itself or has no lease.
	Extend(ctx context.Context) error

	// Release frees the lock if the attempt still has it: nil, ErrLost if not, else
	// unknown. After a definite answer another call returns ErrLost without sending
	// anything; after an unknown outcome it may send again.
	Release(ctx context.Context) error
}

// Bound is what ends a hold whose owner died.
type Bound string

// The bounds. Recipes with BoundTTL or BoundSession are leased.
const (
	BoundTTL        Bound = "ttl"        // a lease by the server's clock
	BoundSession    Bound = "session"    // a lease renewed in the background
	BoundConnection Bound = "connection" // the server detects the end of the connection
	BoundNone       Bound = "none"       // nothing: it is held until a client releases it
)

// Leased reports whether a hold may end while its owner is alive but silent.
func (b Bound) Leased() bool { return b == BoundTTL || b == BoundSession }

// Info describes a recipe.
type Info struct {
	ID       string // "redis/token": backend, slash, name
	Backend  string // "redis"
	Summary  string // one line: the primitives used
	Promise  string // one line: what it guarantees, and on which conditions
	Document string // the source of the recipe
	Bound    Bound
	// Fails is one line on how it is known to fail; "" for a recipe that keeps its
	// guarantee whenever its conditions are met.
	Fails string
	// Properties lists the properties that it promises. Conformance also checks
	// that it does not have the others.
	Properties []Property
	// Steps are its named steps in the order in which a call reaches them, besides
	// StepWaiting and StepWoken; StepRenewing, which no call reaches, is the last.
	Steps []Step
	// Broken marks a control that is wrong on purpose, and must be detected.
	Broken bool

	// Fencing reports whether holds have a fencing token. See FencedOn.
	Fencing bool
	// Unfenced lists the topologies on which the token is not sound: a failover
	// there can reset it, so that a later grant has an earlier or equal number.
	Unfenced []string
	// LockDelay reports whether the recipe serves Config.LockDelay.
	LockDelay bool
	// Polls reports whether waiting follows the wait policy; otherwise the
	// server wakes the waiter.
	Polls bool
	// Topologies on which the recipe can run.
	Topologies []string
	// AvailableOn lists the topologies on which it is Available because the servers
	// replace a lost server.
	AvailableOn []string
	// GrantsPerServer lists the topologies on which each server grants the lock
	// by itself, so that clients of two servers hold it at once: there it does
	// not keep its guarantee.
	GrantsPerServer []string
	// RoundTrips of an uncontended acquire and release together, on an open
	// connection.
	RoundTrips int
	// Requests names the server counters of the requests that this recipe's
	// clients send for locks, without calls by scripts inside the server, and
	// without renewals of sessions, whose cost depends on time and not on
	// acquires. A name that ends in * is a prefix.
	Requests []string
	// Renewals is the server counter of the requests that renew its sessions; "" if
	// no counter has them alone.
	Renewals string
	// Takeover bounds the time from the death of a holder to the next grant while a
	// client waits, for a TTL, without the wait policy's interval. It is nil for
	// BoundNone: then there may be no next grant.
	Takeover func(ttl time.Duration) time.Duration `json:"-"`
	// Handoff bounds the time from a confirmed release to the next grant while a client
	// waits, without the wait policy's interval: 0 if that and a wake-up are all, less
	// than 0 if nothing bounds it, for example since holders of other keys can delay it.
	Handoff time.Duration `json:"-"`
	// DetectionTimeout bounds how long a client may keep using a server that
	// fell silent with its connections open, for a TTL and a request timeout.
	// It is nil if each request finds another server within Takeover.
	DetectionTimeout func(ttl, timeout time.Duration) time.Duration `json:"-"`
	// AnswerLimit is how long a call waits for one of several servers, for a TTL. A
	// server that did not answer may keep what the attempt had there until the end of
	// its TTL. It is nil if every call needs the answers of all its servers.
	AnswerLimit func(ttl time.Duration) time.Duration `json:"-"`
}

// FencedOn reports whether holds on a topology have a fencing token that grows
// with every grant, through every failure that the topology is built to
// survive.
func (i Info) FencedOn(topology string) bool {
	return i.Fencing && !slices.Contains(i.Unfenced, topology)
}

// Limits are the servers' settings that limit the TTL.
type Limits struct {
	TickTime        time.Duration // ZooKeeper's tick; a session lasts 2 to 20 ticks
	ElectionTimeout time.Duration // etcd's; a lease lasts at least 1.5 times this, in whole seconds
}

// DefaultLimits are those of servers with production defaults.
func DefaultLimits() Limits {
	return Limits{TickTime: 2 * time.Second, ElectionTimeout: time.Second}
}

// Config is the configuration of a client. Addresses, Dial, Clock, Wait, TTL
// and Timeout are required.
type Config struct {
	Addresses []string // host:port of each server, in node order; a socket path for reference recipes
	Topology  string   // of the servers: single, quorum...; "" means single, or quorum for a recipe of several servers
	// Directory has the addresses of the servers that know the leader (the
	// sentinels of a replicated redis).
	Directory []string
	Account   Account
	TLS       *tls.Config // nil: the connections are not encrypted
	// Space begins all of a run's keys in etcd, so that they can be removed
	// together; "" where that is not needed.
	Space string
	// Number is the client's number in its scenario: among equal servers each
	// client starts with the one of its number.
	Number int
	Dial   DialFunc
	Clock  Clock
	Wait   WaitPolicy
	TTL    time.Duration
	// LockDelay keeps a key closed for this long after its holder's session was lost;
	// a release opens it at once. It is 0 for recipes whose Info has no LockDelay.
	LockDelay time.Duration
	// Timeout limits one request, apart from waiting for a lock.
	Timeout time.Duration
	// Steps, if not nil, is called when a call reaches a named step.
	Steps Steps
	// Renewals, if not nil, is called for each background renewal.
	Renewals Renewals
	// Shared, if not nil, is shared by the clients of one process: a recipe
	// that uses a connection pool keeps it there.
	Shared *Shared
}

// Account is the login of the clients, for backends that need one.
type Account struct {
	User, Password, Database string
}

// DialFunc opens a connection; drivers open connections only with it.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Clock is a client's time. See Monotonic for time that no setting changes.
type Clock interface {
	// Now is the client's time, with a monotonic reading unless skewed.
	Now() time.Time
	// Sleep waits d, or until ctx ends and returns its error.
	Sleep(ctx context.Context, d time.Duration) error
	// AfterFunc calls f in its own goroutine after d; stop reports whether it
	// prevented the call.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// WaitPolicy is how long a polling recipe waits before it asks again. Each
// client has its own, so an implementation need not be safe for concurrent use.
type WaitPolicy interface {
	Next() time.Duration
	String() string // "5ms..15ms": printed beside every contended number
}
