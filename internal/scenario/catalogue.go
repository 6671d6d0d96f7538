package scenario

import (
	"fmt"
	"slices"
	"time"
)

// RecipeFacts is what an expansion has to know of a recipe. Whoever knows the
// recipes fills it in.
type RecipeFacts struct {
	ID      string // "redis/token"
	Backend string // "redis"
	Bound   string // ttl, session, connection or none
	Fencing bool   // its holds carry fencing tokens
	// Broken marks a control that is wrong on purpose: by default it is
	// expected to be caught.
	Broken     bool
	Topologies []string // on which it may run
	// Nodes is how many servers a topology has, 0 where it is not known. Where it
	// is nil a single server is one, and of the others nothing is known.
	Nodes func(topology string) int
	// GrantsPerServer lists those of them on which each server grants the lock by itself: it
	// is expected to be caught there.
	GrantsPerServer []string
	// Properties lists the properties that it promises ("exclusive"); nil: not known.
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
	// CheckTTL tells why the backend cannot serve ttl with its servers set as
	// the scenario sets them (Scenario.Servers of the backend; nil: production
	// defaults), or nil. A nil CheckTTL accepts every TTL.
	CheckTTL func(ttl time.Duration, settings map[string]string) error
	// CanFault tells why the backend's servers, in a topology and set as the
	// scenario sets them, cannot suffer a fault, or nil. A nil CanFault accepts
	// every fault.
	CanFault func(topology string, k FaultKind, settings map[string]string) error
	// Keeps reports whether the servers, in a topology and set as the scenario
	// sets them, are known to keep every lock that they granted through a fault
	// of theirs, as long as its holder is heard of. Where it is nil nothing is
	// known.
	Keeps func(topology string, k FaultKind, settings map[string]string) bool
}

// has reports whether the recipe promises a property, or may: what it promises
// is not known.
func (r RecipeFacts) has(property string) bool {
	return r.Properties == nil || slices.Contains(r.Properties, property)
}

// Lacks says what a fault on servers needs that a topology does not have, and
// what to do about it; nothing if all of it is there, or nothing is known of the
// topology.
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
	case nodes == 1 && (k.Action == ActCutPeers || k.Action == ActMove):
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

// NewCatalogue makes a Catalogue.
func NewCatalogue(recipes ...RecipeFacts) Catalogue { return append(Catalogue{}, recipes...) }

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

// Some faults by name; see FaultKind for the others.
const (
	HolderPause = "holder-pause"
	HolderKill  = "holder-kill"
	StepPause   = "step-pause"
	StepKill    = "step-kill"
)

// The topologies and environments of the design; a recipe says on which
// topologies it runs, and this version runs servers as processes only.
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
		{Uncontended, "every client on a key of its own: what a lock costs when nobody else wants it"},
		{HotKey, "all clients on one key: how the lock passes from hand to hand"},
		{Keys, "each acquire draws one of many keys, uniformly or by Zipf's law"},
		{GuardedCounter, "all clients read, work and write back a counter under the lock: shows what double holds do to the data, with and without fencing tokens"},
		{TryStorm, "all clients try one key and never wait for it: how many refusals a second, and whether a try is answered at once"},
		{ReadWrite, "all clients on one key, a share of the acquires for reading: readers share the lock, writers exclude everybody"},
		{Reentrant, "each client locks one key several times over, works, and unlocks as often: an inner release must not free the outer hold"},
		{Batch, "each acquire draws several keys and takes them all or none"},
		{Churn, "all clients on one key with short limits, half of the waits cancelled, half out of time: what waiters that gave up leave behind"},
		{Takeover, "half of the clients hold a key each until they are killed, the others wait for one each: how long a dead holder's lock stays taken"},
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
