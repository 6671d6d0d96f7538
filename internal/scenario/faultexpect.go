package scenario

import "slices"

// Under a fault an answer is expected only where whoever knows the recipe and
// its servers can tell it. What would be the user's question is left open: an
// answer that is merely likely must not fail a suite.

// open is the expectation of nothing.
var open = Expect{}

// underFaults is what is expected of a recipe under all faults of a scenario,
// where it would answer calm without them: of each answer the worst that one of
// them promises, and nothing where one leaves it open.
func underFaults(sc Scenario, r RecipeFacts, calm Expect) Expect {
	e := calm
	for _, f := range sc.Faults {
		u := underFault(sc, r, f, calm)
		e.Verdict = graver(e.Verdict, u.Verdict, Unsafe)
		e.Promise = graver(e.Promise, u.Promise, Broken)
		e.Liveness = graver(e.Liveness, u.Liveness, Stuck)
	}
	return e
}

// graver is the answer to expect where two are: what one fault breaks another
// does not mend, and otherwise an open one stays open.
func graver(a, b, bad string) string {
	switch {
	case a == bad || b == bad:
		return bad
	case a == "" || b == "":
		return ""
	}
	return a
}

func underFault(sc Scenario, r RecipeFacts, f Fault, calm Expect) Expect {
	k, ok := ParseFaultKind(f.Kind)
	var e Expect
	switch {
	case !ok:
		return open
	case k.Target == TargetStep:
		e = atStep(k, calm)
	case k.OnHolder():
		e = onHolder(sc, r, k, f, calm)
	case k.OnClient():
		e = onBystander(r, k, calm)
	default:
		e = onServers(sc, r, k, f, calm)
	}
	switch {
	// A lock that anybody's release frees keeps its word only as long as no call is
	// late or in doubt, and under a fault, on a busy machine too, some call is.
	case !r.has("symmetric"):
		e.Verdict, e.Promise = graver(e.Verdict, "", Unsafe), ""
	// One whose late release says nothing breaks its word by that.
	case r.Leased() && !r.has("reports-lost"):
		e.Promise = ""
	}
	return e
}

// atStep: what a crash or a pause at the worst place does is the user's
// question. But an answer that is lost there must not make a lock break its
// word.
func atStep(k FaultKind, calm Expect) Expect {
	if k.Action == ActReplyLost {
		return Expect{Promise: calm.Promise}
	}
	return open
}

// onHolder is what is expected when the client that holds is hit.
func onHolder(sc Scenario, r RecipeFacts, k FaultKind, f Fault, calm Expect) Expect {
	e := calm
	long := Duration(sc.Workload.longestHold()) >= sc.TTL
	switch k.Action {
	case ActPause:
		if r.Leased() {
			// A paused holder outlives its lease: the lock keeps its word, and two
			// clients hold it all the same.
			e.Verdict = Unsafe
		}
	case ActKill:
		if r.Bound == "none" {
			e.Liveness = "" // nothing ends what a dead client holds
		}
	case ActCutKill:
		if !r.Leased() {
			e.Liveness = "" // no server sees the end of a connection that is cut
		}
	case ActCut, ActCutOut, ActStall, ActRefuse:
		return cutOff(sc, r, k, calm)
	case ActCutIn:
		e.Liveness = finite(r, e.Liveness)
	case ActReset, ActReplyLost:
		if r.Bound == "connection" {
			return open // it ends with the connection, whatever its holder does
		}
		e.Liveness = finite(r, e.Liveness)
	case ActDelay, ActThrottle, ActStarve:
		// What makes a client slow makes its hold longer, by how much nobody can
		// say; of a delay that is known.
		slow := Duration(sc.Workload.longestHold()) + 10*(f.By+f.Jitter)
		if r.Leased() && (long || slow >= sc.TTL/2) {
			e.Verdict = ""
		}
	case ActClock:
		// The recipes take their times from a clock that does not jump, but for
		// those that write the time of day into the lock.
	}
	return e
}

// cutOff is what is expected when nothing that the holder sends arrives, for
// longer than a lease. Its hold ends when it sends the release, in vain; a hold
// longer than the lease goes on beside its successor's, unless the client
// learns of the loss or watches its lease.
func cutOff(sc Scenario, r RecipeFacts, k FaultKind, calm Expect) Expect {
	e := calm
	e.Liveness = finite(r, e.Liveness)
	shortest := Duration(sc.Workload.shortestHold())
	switch {
	case r.Bound == "connection" && k.Action == ActRefuse:
		return open
	case r.Bound == "connection":
		e.Liveness = "" // it stays taken until the servers hear of it again
	case r.Bound == "session" && Duration(sc.Workload.longestHold()) >= sc.TTL:
		e.Verdict = "" // whether it learns of the loss in time is the question
	case r.Bound == "ttl" && !sc.Workload.WatchLease && shortest > sc.TTL:
		e.Verdict = Unsafe
	}
	return e
}

// finite expects that the lock passes on only where something ends a hold whose
// release was lost.
func finite(r RecipeFacts, live string) string {
	if r.Bound == "none" || !r.has("cleans-up") {
		return ""
	}
	return live
}

// onBystander is what is expected when a client is hit that holds nothing.
func onBystander(r RecipeFacts, k FaultKind, calm Expect) Expect {
	e := calm
	if k.Target == TargetNonholder && k.Action == ActKill {
		return e
	}
	switch k.Action {
	case ActDelay, ActThrottle, ActClock, ActStarve:
		return e
	}
	// The lock may be given to a waiter that does not know it, and what ends
	// that is what ends any hold: its lease; but not a connection that lives, and
	// not a session that goes on being heard of.
	switch {
	case r.Bound == "none", r.Bound == "connection" && k.Action != ActKill && k.Action != ActReset:
		e.Liveness = ""
	case r.Bound == "session" && (k.Action == ActCutIn || k.Action == ActStall || k.Action == ActReplyLost):
		e.Liveness = ""
	}
	return e
}

// onServers is what is expected when servers are hit.
func onServers(sc Scenario, r RecipeFacts, k FaultKind, f Fault, calm Expect) Expect {
	if r.Keeps == nil || !r.Keeps(sc.Topology, k, sc.Servers[r.Backend]) {
		return open
	}
	e := calm
	if r.Bound == "connection" && endsConnections(k) {
		return open // so it ends the locks that hang on them
	}
	// What the servers do not hear of for longer than a lease they take for
	// dead.
	if r.Leased() && f.For > sc.TTL && Duration(sc.Workload.longestHold()) >= sc.TTL {
		e.Verdict = ""
	}
	if !goesOn(sc.Topology, k) || r.Bound == "none" {
		// Where nobody answers nobody is granted anything, and where nothing ends a
		// hold one whose release is in doubt stays.
		e.Liveness = ""
	}
	return e
}

// endsConnections reports whether a fault of servers ends connections to them.
func endsConnections(k FaultKind) bool {
	return slices.Contains([]string{ActKill, ActRestart, ActReset, ActRefuse, ActClose, ActCut, ActCutClients}, k.Action)
}

// goesOn reports whether servers of a topology go on to serve through a fault.
// The time that an election takes is not part of what a recipe promises, and left
// out where liveness is measured.
func goesOn(topology string, k FaultKind) bool {
	switch k.Action {
	case ActDelay, ActThrottle, ActReset, ActMove, ActClose, ActClock:
		return true
	case ActSlowDisk:
		return topology == TopologySingle
	case ActFull:
		return false // one full member has all of a quorum refuse
	}
	if topology == topologyQuorum && k.Target == TargetLeader {
		return true
	}
	_, numbered := k.Node()
	return (topology == topologyQuorum || topology == topologyGalera) && (numbered || k.Target == TargetFollower || k.Target == TargetMinority)
}
