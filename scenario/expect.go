package scenario

// expectAny, in a suite, expects nothing of an answer.
const expectAny = "any"

// expectation is what the user expects, and of what the user said nothing,
// the default.
func expectation(sc Scenario, s Settings, r RecipeFacts) Expect {
	e := defaultExpectation(sc, r)
	if s.Expect != nil {
		e = mergeExpect(e, *s.Expect)
	}
	e = mergeExpect(e, s.ExpectFor[r.ID])
	for _, answer := range []*string{&e.Verdict, &e.Promise, &e.Liveness} {
		if *answer == expectAny {
			*answer = ""
		}
	}
	return e
}

func defaultExpectation(sc Scenario, r RecipeFacts) Expect {
	contended := sc.Workload.Kind != Uncontended && sc.Clients >= 2
	switch {
	case !contended:
		// Without a second client there is no evidence of safety to be had.
		return Expect{Promise: Kept}
	case r.Broken:
		return Expect{Verdict: Unsafe, Promise: Broken}
	case paused(sc) && r.Leased():
		// A paused holder outlives its lease: the lock keeps its word, and two
		// clients hold it all the same.
		return Expect{Verdict: Unsafe, Promise: Kept, Liveness: Live}
	case r.Bound == "ttl" && !sc.Workload.WatchLease && sc.Workload.longestHold() >= sc.TTL.D():
		return Expect{Promise: Kept, Liveness: Live}
	}
	return Expect{Verdict: Safe, Promise: Kept, Liveness: Live}
}

func paused(sc Scenario) bool {
	for _, f := range sc.Faults {
		if f.Kind == HolderPause {
			return true
		}
	}
	return false
}
