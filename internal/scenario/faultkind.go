package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// FaultKind is the parsed name of a fault: its target and its action. It is
// written TARGET-ACTION: "holder-pause", "leader-kill", "node:2-cut". The zero
// value is no fault.
type FaultKind struct {
	Target string
	Action FaultAction
}

// About describes the fault's action.
func (k FaultKind) About() ActionInfo {
	if k.Action == nil {
		return ActionInfo{}
	}
	return k.Action.About()
}

func (k FaultKind) String() string { return k.Target + "-" + k.About().Name }

// OnClient reports whether the fault hits a client; otherwise it hits servers.
func (k FaultKind) OnClient() bool { return isClient(k.Target) }

// OnHolder reports whether the fault's target must hold a lock.
func (k FaultKind) OnHolder() bool { return k.Target == TargetHolder }

// KillsClient reports whether the fault ends a client's process for good.
func (k FaultKind) KillsClient() bool { return k.About().Kills }

// Instant reports whether the fault has no duration: it happens, and what
// follows is up to the servers and the clients.
func (k FaultKind) Instant() bool { return k.About().Instant }

// Node is the number of the one server that a target names, counted from 1.
func (k FaultKind) Node() (int, bool) { return nodeNumber(k.Target) }

// MayLead reports whether the servers that the fault hits may include the
// leader.
func (k FaultKind) MayLead() bool {
	return k.Target != TargetFollower && k.Target != TargetMinority
}

// cutSuffix is strings.CutSuffix for what must not be empty without it.
func cutSuffix(s, suffix string) (string, bool) {
	rest, ok := strings.CutSuffix(s, suffix)
	return rest, ok && rest != ""
}

// faultKind names the fault that was written: its kind alone, or the action of
// one and its target.
func (f FaultSpec) faultKind() string {
	if f.Target == "" {
		return f.Kind
	}
	return f.Target + "-" + f.Kind
}

// unknown describes the error in a fault's name, and returns a hint.
func (a Actions) unknown(name string) (message, hint string) {
	message = fmt.Sprintf("no fault %q", name)
	var targets, can []string
	for _, t := range FaultTargets() {
		targets = append(targets, t.Name)
	}
	if target, _, _ := strings.Cut(name, "-"); GenericTarget(target) != target {
		targets = append(targets, target)
	}
	for _, action := range a {
		about := action.About()
		if name == about.Name {
			return message, fmt.Sprintf("missing fault target: write %s-%s, or a target beside it", about.Targets[0], about.Name)
		}
		// "follower-move": both are known, but do not go together.
		if target, is := cutSuffix(name, "-"+about.Name); is && slices.Contains(targets, target) {
			can = append(can, about.Targets...)
		}
	}
	if len(can) > 0 {
		return message, "it can hit " + strings.Join(can, ", ")
	}
	if near := Nearest(name, names(a.Faults())); len(near) > 0 {
		return message, didYouMean(near, nil)
	}
	return message, "lockbench list faults shows them all"
}
