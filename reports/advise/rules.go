package advise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

const (
	holderPause  = "holder-pause"
	holderKill   = "holder-kill"
	holderCut    = "holder-cut"
	leaderKill   = "leader-kill"
	minorityKill = "minority-kill"
	// The others elect a new leader, which the old one learns late.
	leaderCutPeers = "leader-cut-peers"

	effective = "effective" // the status of a fault that hit
)

// rule decides one point from measured scenarios.
type rule struct {
	name   string
	decide func(Question, evidence) Point
}

// rules are those that apply to a question.
func rules(q Question) []rule {
	list := []rule{{"hold", hold}, {"paused holder", pause}, {"dead holder", kill}, {"lost holder", cut}}
	for _, need := range q.Needs {
		switch need {
		case NeedFencing:
			list = append(list, rule{need, fencing})
		case NeedFailover:
			list = append(list, rule{need, failover})
		default:
			list = append(list, rule{need, property(need)})
		}
	}
	return list
}

// hold: one holder at a time, without any fault, with holds as long as asked for.
func hold(q Question, e evidence) Point {
	calm := e.calm()
	for _, m := range calm {
		if q.exceeded(m) || !bad(m) {
			continue
		}
		p := Point{Verdict: No, Text: fmt.Sprintf("two clients held it without any fault, with hold %s and TTL %s", m.Workload.Hold, m.TTL), Scenario: m.folder}
		for _, shorter := range calm {
			if shorter.HoldPerTTL() < 1 && m.HoldPerTTL() >= 1 && shorter.Safety.AllGood() {
				p.Change = fmt.Sprintf("keep every hold below the TTL: with hold %s and TTL %s it was safe (%s)", shorter.Workload.Hold, shorter.TTL, shorter.folder)
			}
		}
		return p
	}
	for _, m := range calm {
		if q.reached(m) && m.Safety.AllGood() {
			return Point{Verdict: Yes, Text: fmt.Sprintf("one holder at a time with hold %s and TTL %s", m.Workload.Hold, m.TTL), Scenario: m.folder}
		}
	}
	return Point{Verdict: NotMeasured, Text: fmt.Sprintf("no safe scenario without faults and with holds of %.2g TTLs", q.ratio())}
}

// pause: what happens when the holder stops for longer than its lease.
func pause(_ Question, e evidence) Point {
	list := e.under(holderPause)
	for _, m := range list {
		switch {
		case m.Safety.Promise == scenario.Broken:
			return Point{Verdict: No, Text: "it broke its own guarantee while the holder was paused", Change: "use a lock that checks its owner", Scenario: m.folder}
		case m.Safety.Liveness == scenario.Stuck:
			return Point{Verdict: No, Text: "it stayed taken after the paused holder had resumed", Scenario: m.folder}
		}
	}
	for _, m := range list {
		if m.Safety.Verdict != scenario.Unsafe {
			continue
		}
		if tokensSufficed(m) {
			return Point{Verdict: YesIf, Text: "the resource rejects outdated fencing tokens: two clients held it while the holder was paused, and the fenced counter lost nothing", Scenario: m.folder}
		}
		return Point{Verdict: YesIf, Text: fmt.Sprintf("no holder ever stops for longer than its lease: two clients held it while the holder was paused (TTL %s)", m.TTL), Change: "add fencing tokens, or a lock that has them", Scenario: m.folder}
	}
	return safeUnder(list, "one holder at a time while the holder was paused", "paused holder")
}

// kill: whether another client gets the lock of a dead holder.
func kill(_ Question, e evidence) Point {
	list := e.under(holderKill)
	for _, m := range list {
		switch {
		case m.Safety.Liveness == scenario.Stuck:
			return Point{Verdict: No, Text: "a dead holder's lock stayed taken while clients waited", Change: "free it by hand, or use a lock with a lease, session or connection", Scenario: m.folder}
		case bad(m):
			return Point{Verdict: No, Text: "two clients held it after the holder had died", Scenario: m.folder}
		}
	}
	return safeUnder(list, "another client got a dead holder's lock", "killed holder")
}

// cut: what happens when the network cuts the holder off, with holds as long as
// asked for: a short hold ends before its lease.
func cut(q Question, e evidence) Point {
	list := e.under(holderCut).where(func(m measured) bool {
		return !q.exceeded(m) || m.Safety.Verdict != scenario.Unsafe || m.Safety.Promise == scenario.Broken
	})
	for _, m := range list {
		switch {
		case m.Safety.Promise == scenario.Broken:
			return Point{Verdict: No, Text: "it broke its own guarantee while the holder was cut off", Change: "use a lock that checks its owner", Scenario: m.folder}
		case m.Safety.Verdict == scenario.Unsafe && tokensSufficed(m):
			return Point{Verdict: YesIf, Text: "the resource rejects outdated fencing tokens: two clients held it while the holder was cut off, and the fenced counter lost nothing", Scenario: m.folder}
		case m.Safety.Verdict == scenario.Unsafe:
			return Point{Verdict: YesIf, Text: fmt.Sprintf("a holder that cannot reach the server stops working when its lease ends: two clients held it while the holder was cut off (TTL %s)", m.TTL), Scenario: m.folder}
		case m.Safety.Liveness == scenario.Stuck:
			return Point{Verdict: YesIf, Text: "the network never cuts a holder off for long: its lock stayed taken until the cut ended", Change: "use a lock with a lease or a session", Scenario: m.folder}
		}
	}
	long := list.where(q.reached)
	if len(long) == 0 {
		return Point{Verdict: NotMeasured, Text: fmt.Sprintf("no scenario with a holder cut off and holds of %.2g TTLs", q.ratio())}
	}
	return safeUnder(long, "one holder at a time, and another client got the lock, while the holder was cut off", "holder cut off")
}

// failoverFaults are what a lock on several servers must survive: a dead leader,
// a leader that others have replaced without its knowledge, and without a leader a
// dead minority.
func failoverFaults() []string { return []string{leaderKill, leaderCutPeers, minorityKill} }

// failover: one holder at a time, and progress, when a server of several fails.
func failover(_ Question, e evidence) Point {
	list := e.where(func(m measured) bool {
		for _, f := range m.Faults {
			if !slices.Contains(failoverFaults(), f.Kind) || f.Status != effective {
				return false
			}
		}
		return len(m.Faults) > 0 && m.Topology != scenario.TopologySingle && m.Competed()
	})
	survived := map[string]measured{}
	for _, m := range list {
		kind := m.Faults[0].Kind
		switch {
		case bad(m):
			return Point{Verdict: No, Text: fmt.Sprintf("not safe under %s: %s", kind, why(m)), Change: "use servers that confirm a grant only when a majority has it", Scenario: m.folder}
		case m.Safety.Liveness == scenario.Stuck:
			return Point{Verdict: No, Text: fmt.Sprintf("it stayed taken under %s", kind), Scenario: m.folder}
		case m.Safety.AllGood() && len(m.Faults) == 1:
			survived[kind] = m
		}
	}
	killed, cut := survived[leaderKill], survived[leaderCutPeers]
	if minority := survived[minorityKill]; minority.folder != "" && killed.folder == "" {
		return Point{Verdict: Yes, Text: "one holder at a time when a minority of the servers died", Scenario: minority.folder}
	}
	if killed.folder != "" && cut.folder != "" {
		return Point{Verdict: Yes, Text: "one holder at a time when the leader died, and when it was cut off from its peers (" + cut.folder + ")", Scenario: killed.folder}
	}
	for _, m := range list {
		if !m.Safety.AllGood() {
			return Point{Verdict: NotMeasured, Text: fmt.Sprintf("the scenario with %s proved nothing: %s", m.Faults[0].Kind, why(m)), Scenario: m.folder}
		}
	}
	return Point{Verdict: NotMeasured, Text: fmt.Sprintf("needs scenarios with %s and %s, or without a leader with %s, on several servers", leaderKill, leaderCutPeers, minorityKill)}
}

// safeUnder is yes if one of the scenarios is all good; none of them is bad.
func safeUnder(list evidence, text, what string) Point {
	for _, m := range list {
		if m.Safety.AllGood() {
			return Point{Verdict: Yes, Text: text, Scenario: m.folder}
		}
	}
	for _, m := range list {
		return Point{Verdict: NotMeasured, Text: fmt.Sprintf("the scenario with a %s proved nothing: %s", what, why(m)), Scenario: m.folder}
	}
	return Point{Verdict: NotMeasured, Text: "no scenario with a " + what}
}

// fencing: tokens that grow with every grant, in every scenario that had them.
func fencing(_ Question, e evidence) Point {
	list := e.where(func(m measured) bool { return m.Safety.TokenRegressions != nil && m.Competed() })
	for _, m := range list {
		if *m.Safety.TokenRegressions > 0 {
			text := "a later grant had a token that was not greater"
			if len(m.Faults) > 0 {
				text += ", under " + m.Faults[0].Kind
			}
			return Point{Verdict: No, Text: text, Scenario: m.folder}
		}
	}
	slices.SortStableFunc(list, func(a, b measured) int { return cmp.Compare(b.Safety.ContendedGrants, a.Safety.ContendedGrants) })
	for _, m := range list {
		if m.Safety.ContendedGrants > 0 && len(m.Safety.Damage) == 0 {
			return Point{Verdict: Yes, Text: fmt.Sprintf("every token was greater than the one before, in %d contended grants", m.Safety.ContendedGrants), Scenario: m.folder}
		}
	}
	for _, m := range e.where(func(m measured) bool { return strings.Contains(m.Unmeasured["token_regressions"], "token") }) {
		return Point{Verdict: No, Text: m.Unmeasured["token_regressions"], Change: "use a recipe with tokens", Scenario: m.folder}
	}
	return Point{Verdict: NotMeasured, Text: "no scenario with fencing tokens"}
}

// property: what the conformance suite measured.
func property(name string) func(Question, evidence) Point {
	return func(_ Question, e evidence) Point {
		for _, m := range e.where(func(m measured) bool { return len(m.Properties) > 0 }) {
			for _, p := range m.Properties {
				if p.Property != name {
					continue
				}
				switch p.Measured {
				case scenario.Yes:
					return Point{Verdict: Yes, Text: p.Evidence, Scenario: m.folder}
				case scenario.No, scenario.NotApplicable:
					return Point{Verdict: No, Text: p.Evidence, Change: "use a recipe with the property " + name, Scenario: m.folder}
				}
			}
		}
		return Point{Verdict: NotMeasured, Text: "the property was not measured"}
	}
}

// tokensSufficed reports whether a counter that rejects outdated tokens lost nothing.
func tokensSufficed(m measured) bool {
	return slices.ContainsFunc(m.Safety.Registers, func(r scenario.Register) bool {
		return r.Name == "fenced" && r.LostUpdates == 0 && r.StaleWrites != nil && *r.StaleWrites == 0
	})
}

func bad(m measured) bool {
	return m.Safety.Verdict == scenario.Unsafe || m.Safety.Promise == scenario.Broken
}

// why is the first answer of m that is not good.
func why(m measured) string {
	for _, a := range scenario.Answers() {
		if text := m.Safety.Why[a.Key]; text != "" && a.Of(m.Safety) != a.Good {
			return text
		}
	}
	return "no reason recorded"
}
