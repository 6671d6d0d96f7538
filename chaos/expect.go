package chaos

import (
	"slices"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Under a fault an answer is expected only where the recipe and its servers
// decide it. What would be the user's question is left open (""): an answer that
// is merely likely must not fail a suite.

// anything is the expectation of nothing.
func anything() scenario.Expect { return scenario.Expect{} }

// atStep reports whether a client is hit at a named step. What a crash or a pause
// does at the worst place is the user's question.
func atStep(s scenario.Situation) bool { return s.Kind.Target == scenario.TargetStep }

// lostGrant is what is expected where a client is hit that holds nothing: it may
// be granted the lock and not know it. What ends that hold is what ends any, but
// not if the fault leaves it alive: alive lists the bounds of which that is true.
func lostGrant(s scenario.Situation, alive ...string) scenario.Expect {
	e := s.Calm
	if s.Recipe.Bound == "none" || slices.Contains(alive, s.Recipe.Bound) {
		e.Liveness = ""
	}
	return e
}

// passesOn expects that the lock passes on only where something ends a hold
// whose release was lost.
func passesOn(r scenario.RecipeFacts, live string) string {
	if r.Bound == "none" || !r.Has("cleans-up") {
		return ""
	}
	return live
}

// slowHolder is what is expected when a holder is slow. That makes its hold
// longer, by how much is unknown; of a delay it is known.
func slowHolder(s scenario.Situation) scenario.Expect {
	e := s.Calm
	slow := s.LongestHold() + 10*(s.Fault.By+s.Fault.Jitter)
	if s.Recipe.Leased() && (s.OutlivesTTL() || slow >= s.Scenario.TTL/2) {
		e.Verdict = ""
	}
	return e
}

// cutOffHolder is the expectation if no request of the holder arrives for longer
// than a lease. Its hold ends when it sends the release, which does not arrive. A
// hold longer than the lease overlaps its successor's, unless the client learns
// of the loss or watches its lease.
func cutOffHolder(s scenario.Situation) scenario.Expect {
	e := s.Calm
	e.Liveness = passesOn(s.Recipe, e.Liveness)
	switch load := s.Scenario.Workload; {
	case s.Recipe.Bound == "connection":
		e.Liveness = "" // it stays taken until the servers receive from it again
	case s.Recipe.Bound == "session" && s.OutlivesTTL():
		e.Verdict = "" // whether it learns of the loss in time is the question
	case s.Recipe.Bound == "ttl" && !load.WatchLease && s.ShortestHold() > s.Scenario.TTL:
		e.Verdict = scenario.Unsafe
	}
	return e
}

// slowClient is what is expected when a client is slow, holder or not.
func slowClient(s scenario.Situation) scenario.Expect {
	switch {
	case atStep(s):
		return anything()
	case s.Kind.OnHolder():
		return slowHolder(s)
	}
	return s.Calm
}

// cutOffClient is what is expected when a client is cut off, holder or not.
func cutOffClient(s scenario.Situation, alive ...string) scenario.Expect {
	switch {
	case atStep(s):
		return anything()
	case s.Kind.OnHolder():
		return cutOffHolder(s)
	}
	return lostGrant(s, alive...)
}

// serverFault is what a fault on servers means for the locks that they granted.
type serverFault struct {
	keeps           bool // they keep every lock as long as its holder is connected
	endsConnections bool
	goesOn          bool // the servers go on to serve, an election's time apart
}

func (x serverFault) expect(s scenario.Situation) scenario.Expect {
	if s.Servers == nil || !x.keeps || s.Recipe.Bound == "connection" && x.endsConnections {
		return anything()
	}
	e := s.Calm
	// The servers treat a client without requests for longer than a lease as dead.
	if s.Recipe.Leased() && s.Fault.For > s.Scenario.TTL && s.OutlivesTTL() {
		e.Verdict = ""
	}
	if !x.goesOn || s.Recipe.Bound == "none" {
		// Without a server no lock is granted, and where nothing ends a hold one
		// whose release is in doubt stays.
		e.Liveness = ""
	}
	return e
}

// survivesFailover reports whether locks are kept by whichever server leads after
// the fault: another one need not know of the last grants, unless the servers
// agree on them.
func survivesFailover(s scenario.Situation) bool {
	return s.Servers != nil && (!s.Servers.Failover || s.Kind.Target == scenario.TargetFollower)
}

// durable reports whether servers that are killed keep the locks.
func durable(s scenario.Situation) bool {
	return survivesFailover(s) && s.Servers.Durable
}

// othersGoOn reports whether the servers that the fault leaves go on to serve.
func othersGoOn(s scenario.Situation) bool {
	if s.Servers == nil || !s.Servers.Quorum {
		return false
	}
	_, numbered := s.Kind.Node()
	return numbered || s.Kind.Target == scenario.TargetFollower || s.Kind.Target == scenario.TargetMinority ||
		s.Kind.Target == scenario.TargetLeader && !s.Servers.Leaderless
}
