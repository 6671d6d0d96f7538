package scenario

import "slices"

// expectAny, in a suite, expects nothing of an answer.
const expectAny = "any"

// expectation is what the user expects, else the default.
func expectation(sc Scenario, s Settings, r RecipeFacts) Expect {
	e := merge(merge(defaultExpectation(sc, r), s.Expect), s.ExpectFor[r.ID])
	for _, a := range Answers() {
		if answer := a.Expected(&e); *answer == expectAny {
			*answer = ""
		}
	}
	return e
}

func defaultExpectation(sc Scenario, r RecipeFacts) Expect {
	contended := sc.Workload.Kind != Uncontended && sc.Clients >= 2
	switch {
	case sc.Workload.Kind == Properties:
		// Each property is expected to be measured as the recipe promises.
		return Expect{}
	case !contended:
		// Without a second client there is no evidence of safety.
		return underFaults(sc, r, Expect{Promise: Kept})
	case r.Broken, slices.Contains(r.GrantsPerServer, sc.Topology):
		return Expect{Verdict: Unsafe, Promise: Broken}
	}
	if r.Bound == "none" && sc.Workload.Kind == Takeover && len(sc.Faults) > 0 {
		// No client can take over, so there is no evidence of safety.
		return Expect{Promise: Kept}
	}
	e := Expect{Verdict: Safe, Promise: Kept, Liveness: Live}
	if sc.OutlivesLease(r.Bound) != "" {
		e.Verdict = ""
	}
	if !r.Has("exclusive") {
		e.Verdict, e.Promise = "", ""
	}
	return underFaults(sc, r, e)
}

// longestUnwatched is the longest that a client may keep a lock without a
// renewal. The holders of a takeover keep theirs until they are killed.
func longestUnwatched(sc Scenario) Duration {
	longest := Duration(sc.Workload.longestHold())
	if sc.Workload.Kind == Takeover {
		longest = max(longest, sc.Warmup+sc.Duration)
		if i := slices.IndexFunc(sc.Faults, func(f Fault) bool { return f.Kind == HolderKill }); i >= 0 {
			longest = sc.Warmup + sc.Faults[i].At
		}
	}
	return longest
}
