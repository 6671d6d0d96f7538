package scenario

import "slices"

// The groups of actions, by what they hurt.
const (
	GroupClient = "client" // a client's process or clock
	GroupWire   = "wire"   // what lies between clients and servers
	GroupServer = "server" // the servers, and what lies between them
)

// FaultAction is one thing that faults do to clients, to servers or to both, as
// far as a scenario has to know of it. Package chaos has all of them, each in a
// file of its own with everything else about it.
type FaultAction interface {
	About() ActionInfo
	// Expect is what is expected of a scenario in which the action is a fault.
	// Of several faults the worst answer counts.
	Expect(Situation) Expect
}

// ActionInfo describes an action.
type ActionInfo struct {
	Name    string
	Group   string
	Targets []string // with TargetNode for one server by its number
	Summary string   // what it does, for lists
	Means   string   // by what it is done, for lists
	Did     string   // what happened to the target, for reports: "was paused"

	Instant   bool     // it happens and has no duration
	For       Duration // default duration; 0: what outlives a lease for certain
	Lasts     string   // what the duration means; "": how long it lasts
	By        Measure
	Rate      int64 // default bytes a second; 0: the action has no rate
	HasJitter bool  // by may vary

	// Wire: it lies between clients and servers. DropsPackets: and dropping
	// packets amounts to it, so that the kernel can do it too.
	Wire, DropsPackets bool
	// Links: it lies between servers, whose links must then run through proxies.
	Links bool
	// Needs is the ability that servers must have; "": none.
	Needs string
	// Prepared: the servers must be started with what makes clocks settable and
	// disks slow.
	Prepared bool
	// Peers: it makes sense among several servers only.
	Peers bool

	// StopsProcess: a process is stopped by signals, for a while or to be sure of
	// it. Freezes: and does nothing from the injection to the heal. Kills: and
	// is a client's, and ends for good.
	StopsProcess, Freezes, Kills bool
	// Exclusive: it sets one thing, which its heal sets right.
	Exclusive bool
	// AboutHold: it is about the lock that a client holds, whatever its target.
	AboutHold bool
	// KeepsLeader: the leader of the servers leads on.
	KeepsLeader bool
	// KeepsServing: the target works on as before, so clients must still be
	// granted the lock.
	KeepsServing bool
	// Forgets: servers that do not agree on locks lose those that they granted.
	Forgets bool
	// Misleads: all that a client does meanwhile is in doubt, and what it writes
	// misleads others for a lease.
	Misleads bool
}

// Measure is how much of what an action does; without a name there is none.
type Measure struct {
	Name    string // "clock offset"
	Summary string // for lists, with its default
	Default Duration
	AddTTL  bool // to the default
	Signed  bool // it may be negative
}

// ShortestDuration is an optional part of a FaultAction: the least duration with
// which a fault proves anything, or 0.
type ShortestDuration interface {
	ShortestFor(target string, ttl Duration) Duration
}

// Situation is a fault in its scenario.
type Situation struct {
	Scenario Scenario
	Fault    Fault
	Kind     FaultKind
	Recipe   RecipeFacts
	Servers  *ServerFacts // nil: nothing is known of them
	Calm     Expect       // what is expected without any fault
}

// OutlivesTTL reports whether a hold may last as long as its lease.
func (s Situation) OutlivesTTL() bool {
	return Duration(s.Scenario.Workload.longestHold()) >= s.Scenario.TTL
}

// LongestHold is the longest hold that is not an oddity, ShortestHold the
// shortest.
func (s Situation) LongestHold() Duration  { return Duration(s.Scenario.Workload.longestHold()) }
func (s Situation) ShortestHold() Duration { return Duration(s.Scenario.Workload.shortestHold()) }

// ServerFacts is what the servers of a backend guarantee in a topology, with
// their settings.
type ServerFacts struct {
	// Consensus: they keep locks by agreeing on them, on disk, so that a restart
	// loses none.
	Consensus bool
	// Durable: a server that was killed has what it granted when it is started
	// again.
	Durable bool
	// MonotonicClock: they time leases by a clock that does not jump.
	MonotonicClock bool
	// Failover: another server may take over without the last grants.
	Failover bool
	// Leaderless: no server leads the others.
	Leaderless bool
	// KeysPerServer: each server has keys of its own.
	KeysPerServer bool
	// Quorum: most of the servers decide, and the others can be missed.
	Quorum bool
	// ToleratesRejection: a client asks all servers, and one that rejects its
	// request need not fail the call.
	ToleratesRejection bool
	// SendsClientsAway: a server that is cut off from the others sends its clients
	// to them.
	SendsClientsAway bool
}

// Actions is the catalogue of actions.
type Actions []FaultAction

// Parse takes a fault's name apart. It is not ok if there is no such target, or
// no such action, or the one cannot be hit by the other.
func (a Actions) Parse(name string) (k FaultKind, ok bool) {
	for _, action := range a {
		about := action.About()
		target, is := cutSuffix(name, "-"+about.Name)
		if is && target != TargetNode && slices.Contains(about.Targets, GenericTarget(target)) {
			return FaultKind{target, action}, true
		}
	}
	return FaultKind{}, false
}

// Faults lists every kind of fault, but for those that name a server by its
// number.
func (a Actions) Faults() []Entry {
	var list []Entry
	targets := slices.Concat(ClientTargets(), ServerTargets())
	targets = append(targets[:len(targets)-1], TargetEach)
	for _, target := range targets {
		for _, action := range a {
			if about := action.About(); slices.Contains(about.Targets, target) {
				list = append(list, Entry{FaultKind{target, action}.String(), about.Summary})
			}
		}
	}
	return list
}

// where lists the names of the actions that have a trait.
func (a Actions) where(trait func(ActionInfo) bool) []string {
	var list []string
	for _, action := range a {
		if about := action.About(); trait(about) && !slices.Contains(list, about.Name) {
			list = append(list, about.Name)
		}
	}
	return list
}
