package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// ParseExpect reads expectations as they are written on a command line: answers
// such as "safe" or "verdict=safe", and thresholds such as "acquire.p99 < 20ms".
func ParseExpect(words []string) (Expect, error) {
	var e Expect
	answers := fieldsIn(&e)
	for _, word := range words {
		if strings.ContainsAny(word, "<>") {
			if _, err := ParseThreshold(word); err != nil {
				return Expect{}, err
			}
			e.Thresholds = append(e.Thresholds, strings.TrimSpace(word))
			continue
		}
		name, value, named := strings.Cut(word, "=")
		if !named {
			name, value = "", word
		}
		if name == "guarantee" { // what "promise" is called in prose
			name = "promise"
		}
		at := slices.IndexFunc(answers, func(f field) bool {
			choices := strings.Fields(f.tag.Get("choices"))
			return slices.Contains(choices, value) && (f.name == name || !named && value != expectAny)
		})
		if at < 0 {
			return Expect{}, fmt.Errorf(`invalid expectation %q: write safe, unsafe, kept, broken, live or stuck, verdict=, guarantee= or liveness= with one of them or any, or a threshold such as "acquire.p99 < 20ms"`, word)
		}
		answers[at].value.SetString(value)
	}
	return e, nil
}

// Competes reports whether two clients may want one key. Without that a run is no
// evidence of safety.
func (sc Scenario) Competes() bool { return competes(sc.Workload, sc.Clients) }

// Competed is Competes of the scenario that r is the result of.
func (r Result) Competed() bool { return competes(r.Workload, r.Clients) }

func competes(l Load, clients int) bool {
	return l.Kind != Uncontended && l.Kind != Properties && clients >= 2
}

// Require puts e over the expectations of a resolved scenario. A failure that the
// suite expects is no longer expected. Where no clients compete, no verdict and no
// liveness is expected, since there is no evidence for either.
func (sc Scenario) Require(e Expect) Scenario {
	if sc.Workload.Kind == Properties {
		return sc
	}
	if !sc.Competes() {
		e.Verdict, e.Liveness = "", ""
	}
	for _, a := range Answers() {
		switch now, given := a.Expected(&sc.Expect), *a.Expected(&e); {
		case given == expectAny, given == "" && *now == a.Bad:
			*now = ""
		case given != "":
			*now = given
		}
	}
	sc.Expect.Thresholds = append(slices.Clone(sc.Expect.Thresholds), e.Thresholds...)
	return sc
}

// OutlivesLease says how a hold can outlive its lease if the recipe, bound as
// given, does not renew it; "" if no hold can. Two clients can then hold the lock
// at once without any fault.
func (sc Scenario) OutlivesLease(bound string) string {
	longest := longestUnwatched(sc)
	if bound != "ttl" || sc.Workload.Kind == Properties || sc.Workload.WatchLease || longest < sc.TTL {
		return ""
	}
	hold := "hold up to " + longest.String()
	if d := sc.Workload.Hold; d.Kind == DistExponential {
		hold = "hold of " + d.String()
	}
	if longest == sc.TTL {
		return fmt.Sprintf("%s is as long as TTL %s; %s does not renew", hold, sc.TTL, sc.Recipe)
	}
	return fmt.Sprintf("%s exceeds TTL %s; %s does not renew", hold, sc.TTL, sc.Recipe)
}

// HoldPerTTL is the longest hold of the load, in TTLs.
func (r Result) HoldPerTTL() float64 {
	if r.TTL <= 0 {
		return 0
	}
	return r.Workload.longestHold().Seconds() / r.TTL.D().Seconds()
}
