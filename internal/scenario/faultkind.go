package scenario

import (
	"slices"
	"strconv"
	"strings"
)

// FaultKind is the name of a fault taken apart: whom it hits, and what it does
// to them. It is written TARGET-ACTION: "holder-pause", "leader-kill",
// "node:2-cut".
type FaultKind struct {
	Target, Action string
}

// The targets. Those of the first group are clients, and are hit one at a time;
// the others are servers. Each is found when the fault fires.
const (
	// TargetHolder is a client that holds a lock.
	TargetHolder = "holder"
	// TargetWaiter is the client that has waited longest for a lock.
	TargetWaiter = "next-waiter"
	// TargetNonholder is any client that holds nothing: the control group.
	TargetNonholder = "random-nonholder"
	// TargetStep is the next client that comes to the step that the fault names.
	TargetStep = "step"

	TargetLeader = "leader"
	// TargetServing is the server that a holder's client is connected to: of a
	// sharded topology the one with its key, of ZooKeeper the one with its
	// session, else the leader.
	TargetServing = "leader-serving-holder"
	// TargetFollower is any one server that does not lead.
	TargetFollower = "follower"
	// TargetMinority is as many servers as a quorum can miss, the leader not
	// among them; TargetMajority is all others but one less than a quorum, the
	// leader among them.
	TargetMinority = "minority"
	TargetMajority = "majority"
	// TargetAll is all servers at once, TargetEach one after another.
	TargetAll  = "all"
	TargetEach = "each"
	// targetNode, with a number behind it, is one server, counted from 1.
	targetNode = "node:"
)

// The actions. The comments say what they do to a client (C) and to a server
// (S); where one is not named, such a target cannot be hit so.
const (
	ActPause = "pause" // C, S: SIGSTOP for a while
	ActKill  = "kill"  // C: SIGKILL, for good. S: SIGKILL, started again after a while
	// ActRestart: S: SIGKILL, started again at once.
	ActRestart = "restart"
	// ActCut: C: nothing passes between it and the servers, in either direction.
	// S: nothing passes between it and anybody.
	ActCut = "cut"
	// ActCutIn: C: what servers send does not reach it; ActCutOut: what it sends
	// does not reach them.
	ActCutIn  = "cut-in"
	ActCutOut = "cut-out"
	// ActCutKill: C: cut off, then killed while it is: no server sees its end
	// before the heal.
	ActCutKill = "cut-kill"
	// ActCutPeers: S: nothing passes between it and the other servers, while
	// clients still reach it. ActCutClients: the other way round.
	ActCutPeers   = "cut-peers"
	ActCutClients = "cut-clients"
	ActDelay      = "delay"    // C, S: everything between it and servers or clients comes late
	ActThrottle   = "throttle" // C, S: so many bytes a second and no more
	ActStall      = "stall"    // C: it does not read, and what it writes waits
	ActReset      = "reset"    // C: its connections break. S: all its clients' connections break
	ActRefuse     = "refuse"   // C: its connections break and new ones are refused. S: those of all clients to it
	// ActReplyLost: C: its next request reaches the server, the answer is
	// swallowed and the connection breaks.
	ActReplyLost = "reply-lost"
	ActClock     = "clock"     // C, S: its wall clock jumps
	ActStarve    = "starve"    // C: it gets a twentieth of a CPU
	ActMove      = "move"      // S (leader): asked to hand over the lead
	ActClose     = "close"     // S: asked to close its clients' connections
	ActSlowDisk  = "slow-disk" // S: every fsync takes longer
	ActEvict     = "evict"     // S: memory filled until it evicts the lock
	ActFull      = "full"      // S: it has no room left, and refuses what takes more
	ActFlush     = "flush"     // S: asked to forget everything
)

var (
	clientTargets = []string{TargetHolder, TargetWaiter, TargetNonholder, TargetStep}
	serverTargets = []string{TargetServing, TargetLeader, TargetFollower, TargetMinority, TargetMajority, TargetAll, TargetEach}

	clientActions = []string{ActPause, ActKill, ActCut, ActCutIn, ActCutOut, ActCutKill, ActDelay, ActThrottle, ActStall, ActReset, ActRefuse, ActReplyLost, ActClock, ActStarve}
	serverActions = []string{ActPause, ActKill, ActRestart, ActCut, ActCutPeers, ActCutClients, ActDelay, ActThrottle, ActReset, ActRefuse, ActClock, ActMove, ActClose, ActSlowDisk, ActEvict, ActFull, ActFlush}
)

// ParseFaultKind takes a fault's name apart. It is not ok if there is no such
// target, or it cannot be hit so.
func ParseFaultKind(name string) (k FaultKind, ok bool) {
	for _, target := range append(slices.Clone(clientTargets), serverTargets...) {
		action, is := strings.CutPrefix(name, target+"-")
		if is && slices.Contains(actionsOn(target), action) {
			return FaultKind{target, action}, true
		}
	}
	if rest, is := strings.CutPrefix(name, targetNode); is {
		number, action, _ := strings.Cut(rest, "-")
		k = FaultKind{targetNode + number, action}
		_, numbered := k.Node()
		return k, numbered && slices.Contains(actionsOn(k.Target), action)
	}
	return FaultKind{}, false
}

func actionsOn(target string) []string {
	switch {
	case slices.Contains(clientTargets, target):
		return clientActions
	case target == TargetLeader:
		return serverActions
	case target == TargetEach:
		return []string{ActRestart, ActPause}
	}
	return slices.DeleteFunc(slices.Clone(serverActions), func(a string) bool { return a == ActMove })
}

func (k FaultKind) String() string { return k.Target + "-" + k.Action }

// OnClient reports whether the fault hits a client; otherwise it hits servers.
func (k FaultKind) OnClient() bool { return slices.Contains(clientTargets, k.Target) }

// KillsClient reports whether the fault ends a client's process for good.
func (k FaultKind) KillsClient() bool {
	return k.OnClient() && (k.Action == ActKill || k.Action == ActCutKill)
}

// OnHolder reports whether the fault's target must hold a lock.
func (k FaultKind) OnHolder() bool { return k.Target == TargetHolder }

// Wire reports whether the fault lies between a client and the servers.
func (k FaultKind) Wire() bool {
	switch k.Action {
	case ActCut, ActCutIn, ActCutOut, ActCutKill, ActCutClients, ActDelay, ActThrottle, ActStall, ActReset, ActRefuse, ActReplyLost:
		return true
	}
	return false
}

// Links reports whether the fault lies between servers, for which their links
// must run through proxies from the start.
func (k FaultKind) Links() bool {
	return !k.OnClient() && (k.Action == ActCut || k.Action == ActCutPeers)
}

// Instant reports whether the fault has no duration: it happens, and what
// follows is the servers' and the clients' affair.
func (k FaultKind) Instant() bool {
	switch k.Action {
	case ActRestart, ActReset, ActReplyLost, ActMove, ActClose, ActEvict, ActFlush:
		return true
	}
	return k.KillsClient() && k.Action == ActKill
}

// Node is the number of the one server that a target names, counted from 1.
func (k FaultKind) Node() (int, bool) {
	text, ok := strings.CutPrefix(k.Target, targetNode)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 1 && text == strconv.Itoa(n)
}

// Needs is the ability that the fault needs of servers (AbilityKill...), or "".
func (k FaultKind) Needs() string {
	switch {
	case k.OnClient():
		return ""
	case k.Action == ActRestart:
		return AbilityKill
	case k.Action == ActCut, k.Action == ActCutPeers:
		return AbilityLinks
	case k.Wire():
		return ""
	}
	return k.Action
}
