package scenario

import (
	"fmt"
	"slices"
	"time"
)

// kills reports whether a kind of fault ends a process for good.
func kills(kind string) bool { return kind == HolderKill || kind == StepKill }

// atStep reports whether a kind of fault meets a client at a named step.
func atStep(kind string) bool { return kind == StepPause || kind == StepKill }

// aimsAtClient reports whether a fault hits the process of one client, and so
// needs that client alone in it. The workload takeover is there to kill many
// holders at one blow.
func aimsAtClient(sc Scenario, kind string) bool {
	return !(sc.Workload.Kind == Takeover && kind == HolderKill)
}

// shortestPause is the least that a holder must be paused for a lease to have
// certainly run out: one that was renewed just before, the server's own
// slack, and time for a successor to be seen.
func shortestPause(ttl Duration) Duration { return 2*ttl + Duration(2*time.Second) }

// resolveFaults fills in what the schedule leaves open. Where a takeover says
// nothing it has one kill, at a time that the seed decides, so that what is
// counted by the clock (a server's own tick, a session's renewals) is met
// anywhere.
func resolveFaults(specs []FaultSpec, sc Scenario) []Fault {
	if sc.Workload.Kind == Takeover && specs == nil {
		span := uint64(max(1, sc.TTL.D()/4/time.Millisecond))
		return []Fault{{Kind: HolderKill, At: Duration(sc.Seed%span) * Duration(time.Millisecond)}}
	}
	var list []Fault
	for _, f := range specs {
		fault := Fault{Kind: f.Kind, At: valueOr(f.At, Duration(defaultFaultAt)), For: valueOr(f.For, 0), Step: f.Step}
		if fault.For == 0 && (fault.Kind == HolderPause || fault.Kind == StepPause) {
			fault.For = shortestPause(sc.TTL)
		}
		list = append(list, fault)
	}
	return list
}

// recovery is the time that must be left after a fault's end for what follows
// to be seen: the paused holder ends its hold, and somebody else gets the lock,
// of a dead one within the recipe's bound. A lock that nothing ends is watched
// for two TTLs.
func recovery(sc Scenario, kind string, r RecipeFacts) Duration {
	rest := max(Duration(2*time.Second), 2*Duration(sc.Workload.longestHold()))
	switch {
	case !kills(kind):
		return rest
	case r.Takeover != nil:
		return rest + Duration(r.Takeover(sc.TTL.D()))
	case r.Bound == "none":
		return rest + 2*sc.TTL
	}
	return rest
}

// faultsEnd is the least duration that has room for all faults.
func faultsEnd(sc Scenario, r RecipeFacts) Duration {
	var end Duration
	for _, f := range sc.Faults {
		end = max(end, f.At+f.For+recovery(sc, f.Kind, r))
	}
	return end
}

func checkFaults(f *findings, sc Scenario, r RecipeFacts) {
	valid := true
	dead := 0
	for i, fault := range sc.Faults {
		if !checkFault(f, sc, i, r) {
			valid = false
		}
		if kills(fault.Kind) {
			dead++
		}
	}
	if dead > 0 && sc.Workload.open() {
		f.add("workload.arrival", "leave it out: a closed loop has no such book", "a process that is killed takes its book of arrivals with it")
	}
	if dead > 1 && sc.Clients <= dead {
		f.add("clients", fmt.Sprintf("write %d or more", dead+1), "%d faults that kill leave nobody of %d clients", dead, sc.Clients)
	}
	if need := faultsEnd(sc, r); valid && sc.Duration > 0 && sc.Duration < need {
		f.add("duration", fmt.Sprintf("write %s or more, or leave it out", need), "%s leaves no room for the faults and the recovery after them", sc.Duration)
	}
}

// checkFault checks the i-th fault, and reports whether its times make sense.
func checkFault(f *findings, sc Scenario, i int, r RecipeFacts) (valid bool) {
	kinds := names(Faults())
	fault := sc.Faults[i]
	at := fmt.Sprintf("faults[%d]", i)
	if !slices.Contains(kinds, fault.Kind) {
		f.add(at+".kind", didYouMean(Nearest(fault.Kind, kinds), kinds), "no fault %q", fault.Kind)
		return false
	}
	valid = true
	if fault.At < 0 {
		f.add(at+".at", "write 1s, for example", "%s is before the measured window", fault.At)
		valid = false
	}
	switch least := shortestPause(sc.TTL); {
	case kills(fault.Kind) && fault.For != 0:
		f.add(at+".for", "leave it out", "%s has no end: what is killed stays dead", fault.Kind)
	case fault.Kind == HolderPause && fault.For < least:
		f.add(at+".for", fmt.Sprintf("write %s or more, or leave it out", least),
			"a pause of %s is too short to outlive a lease of %s for certain", fault.For, sc.TTL)
		valid = false
	case fault.Kind == StepPause && fault.For <= 0:
		f.add(at+".for", "write 5s, for example, or leave it out", "a pause of %s is none", fault.For)
		valid = false
	}
	checkStep(f, at, fault, r)
	if i > 0 {
		if before := sc.Faults[i-1]; fault.At < before.At+before.For {
			f.add(at+".at", fmt.Sprintf("write %s or later", before.At+before.For), "begins at %s, before the fault above has ended", fault.At)
			valid = false
		}
	}
	if sc.Clients < 2 {
		f.add("clients", "write 2 or more", "%s needs a second client, who wants the lock meanwhile", fault.Kind)
	}
	switch sc.Workload.Kind {
	case Uncontended:
		f.add("workload.kind", "use hot-key or guarded-counter", "%s needs clients who want the same key, uncontended has none", fault.Kind)
	case Properties:
		f.add(at+".kind", "leave the faults out", "the conformance suite brings faults of its own")
	}
	return valid
}

func checkStep(f *findings, at string, fault Fault, r RecipeFacts) {
	const hint = `lockbench list recipes --format json shows each recipe's steps`
	switch {
	case !atStep(fault.Kind):
		if fault.Step != "" {
			f.add(at+".step", "leave it out, or use step-pause or step-kill", "%s does not aim at a step", fault.Kind)
		}
	case fault.Step == "":
		f.add(at+".step", hint, "%s needs the name of a step", fault.Kind)
	case r.Steps != nil && !slices.Contains(r.Steps, fault.Step):
		f.add(at+".step", didYouMean(Nearest(fault.Step, r.Steps), r.Steps), "%s has no step %q", r.ID, fault.Step)
	}
}
