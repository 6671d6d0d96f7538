package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// The groups of faults, by what they hurt.
const (
	GroupClient = "client" // a client's process or clock
	GroupWire   = "wire"   // what lies between clients and servers
	GroupServer = "server" // the servers, and what lies between them
)

// FaultAction is one thing that a fault can do, and to whom.
type FaultAction struct {
	Group   string
	Action  string
	Targets []string // with "node:N" for one server by its number
	Summary string
}

const anyNode = targetNode + "N"

// FaultActions lists what faults can do, by group.
func FaultActions() []FaultAction {
	servers := append(slices.Clone(serverTargets), anyNode)
	servers = slices.DeleteFunc(servers, func(t string) bool { return t == TargetEach })
	and := func(targets []string, more ...string) []string { return append(slices.Clone(targets), more...) }
	return []FaultAction{
		{GroupClient, ActPause, clientTargets, "SIGSTOP of its process, for two leases and 2s by default, then SIGCONT"},
		{GroupClient, ActKill, clientTargets, "SIGKILL of its process, stopped before, so that the hold or the place is certain; holder-kill in the workload takeover kills all holders at once"},
		{GroupClient, ActClock, clientTargets, "its wall clock jumps, by a TTL and 1s ahead by default, and is set right again; only what reads it notices"},
		{GroupClient, ActStarve, clientTargets, "it gets a twentieth of a processor"},

		{GroupWire, ActCut, clientTargets, "nothing passes between it and the servers, in either direction, no end of a connection either, and new connections hang"},
		{GroupWire, ActCutIn, clientTargets, "what servers send does not reach it"},
		{GroupWire, ActCutOut, clientTargets, "what it sends does not reach the servers"},
		{GroupWire, ActCutKill, clientTargets, "cut off, then killed while it is: no server learns of its end before the cut is healed"},
		{GroupWire, ActDelay, and(clientTargets, servers...), "all bytes come late, by 50ms in each direction by default"},
		{GroupWire, ActThrottle, and(clientTargets, servers...), "no more than 10 kB a second pass, by default"},
		{GroupWire, ActStall, clientTargets, "it reads nothing, and what it writes waits"},
		{GroupWire, ActReset, and(clientTargets, servers...), "present connections break, once; of a server, those of all its clients"},
		{GroupWire, ActRefuse, and(clientTargets, servers...), "present connections break, and new ones are refused"},
		{GroupWire, ActReplyLost, clientTargets, "its next request reaches the server, whose answer is swallowed, and the connection breaks; where that is kept alive by requests too (etcd, zookeeper) it may be one of these, but for who waits for the step acquiring or releasing"},
		{GroupWire, ActCutClients, servers, "nothing passes between a server and its clients, while the other servers reach it"},

		{GroupServer, ActPause, and(servers, TargetEach), "SIGSTOP, then SIGCONT"},
		{GroupServer, ActKill, servers, "SIGKILL, and started again with its data after 3s by default"},
		{GroupServer, ActRestart, and(servers, TargetEach), "SIGKILL, and started again with its data at once"},
		{GroupServer, ActCut, servers, "nothing passes between a server and anybody"},
		{GroupServer, ActCutPeers, servers, "nothing passes between a server and the other servers, while clients reach it"},
		{GroupServer, ActMove, []string{TargetLeader}, "asked to hand over the lead, while all live"},
		{GroupServer, ActClose, servers, "asked to close its clients' connections"},
		{GroupServer, ActSlowDisk, servers, "every fsync takes longer, by 500ms by default"},
		{GroupServer, ActClock, servers, "its wall clock jumps, by a TTL and 1s ahead by default, and is set right again"},
		{GroupServer, ActEvict, servers, "its memory is filled until it has evicted the lock"},
		{GroupServer, ActFull, servers, "it has no room left: it refuses whatever takes more, and forgets nothing"},
		{GroupServer, ActFlush, servers, "asked to forget everything"},
	}
}

// FaultTargets lists the targets, with a line about each.
func FaultTargets() []Entry {
	return []Entry{
		{TargetHolder, "a client that holds a lock"},
		{TargetWaiter, "the client that has waited longest"},
		{TargetNonholder, "a client that holds nothing: the control group"},
		{TargetStep, "the next client that comes to the step named"},
		{TargetLeader, "the server that leads; a single one does"},
		{TargetServing, "the server that serves the lock's holder"},
		{TargetFollower, "a server that does not lead"},
		{TargetMinority, "as many servers as a quorum can miss, the leader not among them"},
		{TargetMajority, "so many servers that the rest is no quorum, the leader among them"},
		{TargetAll, "all servers at once"},
		{TargetEach, "all servers, one after another"},
		{anyNode, "one server by its number, from 1"},
	}
}

// Faults lists every kind of fault, but for those that name a server by its
// number.
func Faults() []Entry {
	var list []Entry
	for _, target := range append(slices.Clone(clientTargets), serverTargets...) {
		for _, a := range FaultActions() {
			if slices.Contains(a.Targets, target) {
				list = append(list, Entry{FaultKind{target, a.Action}.String(), a.Summary})
			}
		}
	}
	return list
}

// faultKind names the fault that was written: its kind alone, or the action of
// one and its target.
func (f FaultSpec) faultKind() string {
	if f.Target == "" {
		return f.Kind
	}
	return f.Target + "-" + f.Kind
}

// unknownFault says what is wrong with a fault's name, and what to do.
func unknownFault(name string) (message, hint string) {
	message = fmt.Sprintf("no fault %q", name)
	var targets, actions []string
	for _, t := range FaultTargets() {
		targets = append(targets, t.Name)
	}
	for _, a := range FaultActions() {
		if name == a.Action {
			return message, fmt.Sprintf("whom is it to hit? write %s-%s, or a target beside it", a.Targets[0], a.Action)
		}
		// "follower-move": both are known, but do not go together.
		for _, t := range append(slices.Clone(targets), numbered(name)...) {
			if name == t+"-"+a.Action {
				actions = append(actions, a.Targets...)
			}
		}
	}
	if len(actions) > 0 {
		return message, "it can hit " + strings.Join(actions, ", ")
	}
	if near := Nearest(name, names(Faults())); len(near) > 0 {
		return message, didYouMean(near, nil)
	}
	return message, "lockbench list faults shows them all"
}

// numbered is the target of a fault's name that names a server by its number.
func numbered(name string) []string {
	target, _, _ := strings.Cut(name, "-")
	if _, ok := (FaultKind{Target: target}).Node(); ok {
		return []string{target}
	}
	return nil
}
