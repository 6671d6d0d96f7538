package scenario

// Under a fault an answer is expected only where it follows from the recipe and
// its servers. Other answers are left open: an answer that is merely likely must
// not fail a suite.

// underFaults returns the answers expected of a recipe under all faults of a
// scenario; calm are those without faults. Each answer is the worst that one of
// the faults allows, and open if one of them leaves it open.
func underFaults(sc Scenario, r RecipeFacts, calm Expect) Expect {
	e := calm
	for _, f := range sc.Faults {
		u := underFault(sc, r, f, calm)
		for _, a := range Answers() {
			*a.Expected(&e) = graver(*a.Expected(&e), *a.Expected(&u), a.Bad)
		}
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
	k, ok := r.actions.Parse(f.Kind)
	if !ok {
		return Expect{}
	}
	s := Situation{Scenario: sc, Fault: f, Kind: k, Recipe: r, Calm: calm}
	if r.Guarantees != nil && !k.OnClient() {
		facts := r.Guarantees(sc.Topology, sc.Servers[r.Backend])
		s.Servers = &facts
	}
	e := k.Action.Expect(s)
	switch {
	// A lock that any client's release frees keeps its guarantee only as long as no
	// call is late or in doubt, and under a fault, on a busy machine too, some are.
	case !r.Has("symmetric"):
		e.Verdict, e.Promise = graver(e.Verdict, "", Unsafe), ""
	// One whose late release reports nothing breaks its guarantee by that.
	case r.Leased() && !r.Has("reports-lost"):
		e.Promise = ""
	}
	return e
}
