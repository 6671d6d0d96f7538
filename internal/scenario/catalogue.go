package scenario

import (
	"fmt"
	"slices"
	"time"
)

// RecipeFacts is what an expansion needs to know of a recipe.
type RecipeFacts struct {
	ID      string // "redis/token"
	Backend string // "redis"
	Bound   string // ttl, session, connection or none
	Fencing bool   // its holds carry fencing tokens
	// LockDelay: it can keep the key of a holder whose session was lost closed.
	LockDelay bool
	// Broken marks a control that is wrong on purpose: by default it is
	// expected to be caught.
	Broken     bool
	Topologies []string // on which it may run
	// Nodes is how many servers a topology has, 0 if it is not known. If it is nil,
	// only the topology single is known, which has one.
	Nodes func(topology string) int
	// GrantsPerServer lists the topologies on which each server grants the lock by
	// itself: the recipe is expected to be unsafe there.
	GrantsPerServer []string
	// Properties lists the properties it promises ("exclusive"); nil: not known.
	Properties []string
	// Reenters: its client can lock again what it holds, well or badly; it serves
	// the workload reentrant.
	Reenters bool
	// Steps lists the named steps at which a fault may meet a client; nil: not
	// known.
	Steps []string
	// Takeover bounds the time from a holder's death to the next grant, by the
	// TTL; nil: not known, or the bound is none.
	Takeover func(ttl time.Duration) time.Duration
	// CheckTTL returns why the backend cannot serve ttl with the scenario's server
	// settings (Scenario.Servers of the backend; nil: production defaults), or nil. A
	// nil CheckTTL accepts every TTL.
	CheckTTL func(ttl time.Duration, settings map[string]string) error
	// CanFault returns why the backend's servers, in a topology and with the
	// scenario's settings, do not support a fault, or nil. A nil CanFault accepts
	// every fault.
	CanFault func(topology string, k FaultKind, settings map[string]string) error
	// Guarantees is what the servers guarantee, in a topology and set as the
	// scenario sets them. Where it is nil nothing is known.
	Guarantees func(topology string, settings map[string]string) ServerFacts

	actions Actions // that its scenarios may have as faults; set by the expansion
}

// Has reports whether the recipe promises a property, or may: what it promises
// is not known.
func (r RecipeFacts) Has(property string) bool {
	return r.Properties == nil || slices.Contains(r.Properties, property)
}

// Lacks returns what a topology lacks for a fault on servers, and a hint; both are
// empty if it lacks nothing, or if the topology is not known.
func (r RecipeFacts) Lacks(topology string, k FaultKind) (what, hint string) {
	nodes := 0
	switch {
	case k.OnClient():
		return "", ""
	case topology == TopologySingle:
		nodes = 1
	case r.Nodes != nil:
		nodes = r.Nodes(topology)
	}
	number, _ := k.Node()
	switch {
	case nodes == 1 && (number > 1 || slices.Contains([]string{TargetFollower, TargetMinority, TargetMajority}, k.Target)):
		return "a single server has no " + k.Target, "aim at the leader, or use a topology of several servers"
	case nodes == 1 && k.About().Peers:
		return fmt.Sprintf("%s needs other servers, and there is one", k), "use a topology of several servers"
	case nodes == 2 && k.Target == TargetMinority:
		return "of two servers none can be missed, so that there is no minority", "aim at the leader or the follower"
	case nodes > 0 && number > nodes:
		return fmt.Sprintf("there are %d servers, and no %s", nodes, k.Target), fmt.Sprintf("write node:1 to node:%d", nodes)
	}
	return "", ""
}

// Leased reports whether a hold may end while its owner lives but is silent.
func (r RecipeFacts) Leased() bool { return r.Bound == "ttl" || r.Bound == "session" }

// Catalogue lists the recipes to choose from; nil if they are not known.
type Catalogue []RecipeFacts

// NewCatalogue makes a Catalogue of recipes whose scenarios may have the actions
// as faults.
func NewCatalogue(actions Actions, recipes ...RecipeFacts) Catalogue {
	c := append(Catalogue{}, recipes...)
	for i := range c {
		c[i].actions = actions
	}
	return c
}

// Recipe finds a recipe by its id.
func (c Catalogue) Recipe(id string) (RecipeFacts, bool) {
	for _, r := range c {
		if r.ID == id {
			return r, true
		}
	}
	return RecipeFacts{}, false
}

// IDs lists every recipe.
func (c Catalogue) IDs() []string {
	ids := make([]string, len(c))
	for i, r := range c {
		ids[i] = r.ID
	}
	return ids
}

// The workloads.
const (
	Uncontended    = "uncontended"
	HotKey         = "hot-key"
	Keys           = "keys"
	GuardedCounter = "guarded-counter"
	TryStorm       = "try-storm"
	ReadWrite      = "read-write"
	Reentrant      = "reentrant"
	Batch          = "batch"
	Churn          = "churn"
	Takeover       = "takeover"
	// Properties is no load: the conformance suite measures the recipe's
	// properties on the scenario's servers.
	Properties = "properties"
)

// HolderKill is the fault that the workload takeover is about.
const HolderKill = "holder-kill"

// The topologies that matter here, and the environments.
const (
	TopologySingle = "single"
	topologyQuorum = "quorum"
	topologyGalera = "galera"
	EnvProcess     = "process"
	EnvDocker      = "docker"
	EnvExternal    = "external"
)

// The ways in which acquires arrive.
const (
	ArrivalClosed   = "closed"
	ArrivalConstant = "constant"
	ArrivalPoisson  = "poisson"
)

// The distributions of keys.
const (
	KeysUniform = "uniform"
	KeysZipf    = "zipf"
)

// The registers of a guarded counter.
const (
	GuardPlain  = "plain"
	GuardFenced = "fenced"
	GuardBoth   = "both"
)

// Entry is a name that a specification may use, with a line about it.
type Entry struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
}

// Workloads lists the kinds of Load.
func Workloads() []Entry {
	return []Entry{
		{Uncontended, "each client on its own key: what a lock costs without contention"},
		{HotKey, "all clients on one key: how the lock passes from client to client"},
		{Keys, "each acquire draws one of many keys, uniformly or by Zipf's law"},
		{GuardedCounter, "all clients read, work and write back a counter under the lock: shows the damage of double holds, with and without fencing tokens"},
		{TryStorm, "all clients try one key and never wait: how many tries per second, and whether each returns at once"},
		{ReadWrite, "all clients on one key, a share of the acquires for reading: readers share the lock, writers exclude all others"},
		{Reentrant, "each client locks one key several times, works, and unlocks as often: an inner release must not free the outer hold"},
		{Batch, "each acquire draws several keys and takes them all or none"},
		{Churn, "all clients on one key with short limits, half of the waits cancelled, half timed out: what abandoned waits leave behind"},
		{Takeover, "half of the clients hold one key each until they are killed, the others wait: how long a dead holder's lock stays taken"},
		{Properties, "no load: the conformance suite measures each property of the recipe on the scenario's servers"},
	}
}

func names(entries []Entry) []string {
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i] = e.Name
	}
	return all
}
