package scenario

import (
	"slices"
	"strconv"
	"strings"
)

// The targets of faults. Those of the first group are clients, and are hit one
// at a time; the others are servers. Each is found when the fault fires.
const (
	TargetHolder    = "holder"
	TargetWaiter    = "next-waiter"
	TargetNonholder = "random-nonholder"
	TargetStep      = "step"

	TargetLeader   = "leader"
	TargetServing  = "leader-serving-holder"
	TargetFollower = "follower"
	TargetMinority = "minority"
	TargetMajority = "majority"
	TargetAll      = "all"
	TargetEach     = "each"
	// TargetNode stands in lists for one server by its number.
	TargetNode = targetNode + "N"

	targetNode = "node:"
)

// FaultTargets lists the targets, with a line about each.
func FaultTargets() []Entry {
	return []Entry{
		{TargetHolder, "a client that holds a lock"},
		{TargetWaiter, "the client that has waited longest"},
		{TargetNonholder, "a client that holds nothing: the control group"},
		{TargetStep, "the next client that comes to the step named"},
		{TargetLeader, "the server that leads; a single one does"},
		// Of a sharded topology the server with the key, of ZooKeeper the one with
		// the holder's session, else the leader.
		{TargetServing, "the server that serves the lock's holder"},
		{TargetFollower, "a server that does not lead"},
		{TargetMinority, "as many servers as a quorum can miss, the leader not among them"},
		{TargetMajority, "so many servers that the rest is no quorum, the leader among them"},
		{TargetAll, "all servers at once"},
		{TargetEach, "all servers, one after another"},
		{TargetNode, "one server by its number, from 1"},
	}
}

// ClientTargets lists the targets that are clients.
func ClientTargets() []string {
	return []string{TargetHolder, TargetWaiter, TargetNonholder, TargetStep}
}

// ServerTargets lists the targets that are servers, but for TargetEach: few
// actions make sense on one server after another.
func ServerTargets() []string {
	return []string{TargetServing, TargetLeader, TargetFollower, TargetMinority, TargetMajority, TargetAll, TargetNode}
}

// nodeNumber is the number of the one server that a target names, counted from 1.
func nodeNumber(target string) (int, bool) {
	text, ok := strings.CutPrefix(target, targetNode)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 1 && text == strconv.Itoa(n)
}

// GenericTarget is a target as lists have it: node:2 is TargetNode.
func GenericTarget(target string) string {
	if _, numbered := nodeNumber(target); numbered {
		return TargetNode
	}
	return target
}

func isClient(target string) bool { return slices.Contains(ClientTargets(), target) }
