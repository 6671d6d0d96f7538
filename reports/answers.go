package reports

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

// answers are the main results: the fastest locks, the safe and the unsafe ones,
// the effect of fencing tokens, and what is missing.
func answers(r run, es []*experiment) []string {
	var out []string
	flaws := flawed(es)
	for _, e := range es {
		if e.uncontended() && len(e.counts) > 0 && !e.onlyControls() {
			n := e.counts[len(e.counts)-1]
			out = append(out, fastest(e, n, "Fastest without contention", "pairs/s", flaws)...)
		}
	}
	for _, e := range es {
		if matrixed(es) {
			break // a run of many faults is not about speed
		}
		if !e.uncontended() && len(e.faults) == 0 && !e.open() && len(e.counts) > 0 && !e.onlyControls() && !e.meantToFail() {
			n := e.counts[len(e.counts)-1]
			out = append(out, fastest(e, n, "Fastest under contention ("+e.brief()+")", "acquires/s", flaws)...)
		}
	}
	for _, e := range es {
		if len(e.faults) > 0 && !matrixed(es) { // else see the matrix
			out = append(out, held(e)...)
		}
	}
	out = append(out, succeeded(es)...)
	out = append(out, guaranteed(r.doc)...)
	for _, e := range es {
		if e.open() {
			out = append(out, offered(e)...)
		}
	}
	out = append(out, calm(es)...)
	b := newBuilder(r)
	var absent []string
	for _, m := range b.missing() {
		status, _, _ := strings.Cut(m.text, ":")
		absent = append(absent, fmt.Sprintf("%s (%s)", clean(m.name), status))
	}
	if len(absent) > 0 && !r.doc.Interrupted {
		out = append(out, fmt.Sprintf("Not in this comparison: %s; see SERVERS for the reason and the remedy.", list(absent)))
	}
	return out
}

// fewForRank is the number of grants of a run below which it is not ranked.
const fewForRank = 100

// flawed has the locks that are not ranked by speed, with the reason: those that were
// unsafe without a fault, and those that broke their guarantee.
func flawed(es []*experiment) map[string]string {
	reasons := map[string]string{}
	for _, e := range es {
		for _, r := range done(e.all()) {
			switch {
			case reasons[label(r)] != "":
			case r.Safety.Verdict == scenario.Unsafe && len(e.faults) == 0:
				reasons[label(r)] = "unsafe in " + clean(e.title())
			case r.Safety.Promise == scenario.Broken:
				reasons[label(r)] = "guarantee broken in " + clean(e.title())
			}
		}
	}
	return reasons
}

// fastest ranks the subjects of an experiment by throughput, and states whether the
// ranges of the first two overlap. Unsafe locks and runs with few grants have no
// rank.
func fastest(e *experiment, clients int, what, unit string, flaws map[string]string) []string {
	type place struct {
		name string
		s    stat
		p99  stat
	}
	var ps []place
	var unranked []string
	for _, name := range e.rows {
		rs := e.runs[point{name, clients}]
		s := statOf(rs, mThroughput().get)
		fewest := statOf(rs, func(r result) (float64, bool) { return float64(r.Acquired), true }).min
		switch {
		case s.n == 0:
		case flaws[name] != "":
			unranked = append(unranked, name+" ("+flaws[name]+")")
		case fewest < fewForRank:
			unranked = append(unranked, fmt.Sprintf("%s (%s; a rank needs %d)", name, counted(int64(fewest), "grant", "grants"), fewForRank))
		default:
			ps = append(ps, place{name, s, statOf(rs, mAcquire(p99).get)})
		}
	}
	slices.SortStableFunc(ps, func(a, b place) int { return cmp.Compare(b.s.med, a.s.med) })
	text := func(p place) string {
		t := fmt.Sprintf("%s %s %s", p.name, rate(p.s.med), unit)
		if p.p99.n > 0 {
			t += fmt.Sprintf(" (p99 %s)", nanos(p.p99.med))
		}
		return t
	}
	var out []string
	switch {
	case len(ps) == 1:
		where := strings.TrimPrefix(what, "Fastest ")
		out = append(out, fmt.Sprintf("%s, %s: %s; no other recipe to compare with.", upper(where), plural(clients, "client", "clients"), text(ps[0])))
	case len(ps) > 1:
		line := fmt.Sprintf("%s, %s: %s", what, plural(clients, "client", "clients"), text(ps[0]))
		for _, p := range ps[1:] {
			line += ", " + text(p)
		}
		line += "."
		if a, b := ps[0], ps[1]; a.s.n > 1 && b.s.n > 1 && a.s.min <= b.s.max {
			line += fmt.Sprintf(" The repeats of %s and %s overlap: there is no clear difference between them.", a.name, b.name)
		} else if a.s.n < 2 {
			line += " Each number is from one run."
		}
		out = append(out, line)
	}
	return append(out, listed(fmt.Sprintf("Not ranked by speed (%s, %s)", clean(e.title()), plural(clients, "client", "clients")), unranked)...)
}

// held states which locks kept one holder at a time under a fault, which did not,
// and what fencing tokens changed.
func held(e *experiment) []string {
	var kept, two, open []string
	var plainLost, fencedLost, rejected, stale int64
	var tokens []string
	for _, name := range e.rows {
		rs := done(e.of(name))
		if len(rs) == 0 {
			continue
		}
		switch worstVerdict(rs) {
		case scenario.Safe:
			if e.load.Kind == scenario.Takeover {
				continue // see succeeded
			}
			kept = append(kept, name+waitText(rs)+butText(rs))
		case scenario.Unsafe:
			two = append(two, name+brokenText(rs))
		default:
			if !expectsNothing(rs) {
				open = append(open, name)
			}
		}
		p, np := registers(rs, "plain")
		f, nf := registers(rs, "fenced")
		if np > 0 && nf > 0 {
			tokens = append(tokens, name)
			plainLost += p.LostUpdates
			fencedLost += f.LostUpdates
			rejected += f.Rejected
			if p.StaleWrites != nil {
				stale += *p.StaleWrites
			}
		}
	}
	where := clean(list(e.faults))
	out := slices.Concat(
		listed("Safe under "+where+" (one holder at a time)", kept),
		listed("Unsafe under "+where, two),
		listed("Unknown under "+where+", so not proven safe", open))
	if len(tokens) > 0 {
		line := fmt.Sprintf("Fencing tokens under the same faults (%s): the unfenced counter lost %s and accepted %s; the fenced counter lost %s and rejected %s.",
			list(tokens), counted(plainLost, "update", "updates"), counted(stale, "stale write", "stale writes"), counted(fencedLost, "update", "updates"), counted(rejected, "request", "requests"))
		if rejected == 0 {
			line += " Nothing was rejected, so the tokens were not tested."
		}
		out = append(out, line)
	}
	return out
}

// expectsNothing reports whether no verdict was expected, as for a lock without
// takeover: then an unknown verdict is not reported.
func expectsNothing(rs []result) bool {
	return !slices.ContainsFunc(rs, func(r result) bool { return r.Expect.Verdict != "" })
}

func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// waitText is the longest wait for a lock that a fault affected. A client that
// times out and retries waits all the time.
func waitText(rs []result) string {
	var longest, outage int64
	for _, r := range rs {
		for _, f := range r.Faults {
			longest, outage = max(longest, f.LongestWaitNS), max(outage, f.OutageNS)
		}
	}
	switch {
	case longest == 0:
		return ""
	case outage > longest:
		return " (no grant for " + nanos(float64(outage)) + ")"
	}
	return " (longest wait " + nanos(float64(longest)) + ")"
}

// butText names the other faults of a safe lock.
func butText(rs []result) string {
	var but []string
	if worstGuarantee(rs) == scenario.Broken {
		but = append(but, "it broke its guarantee")
	}
	if worstLiveness(rs) == scenario.Stuck {
		but = append(but, "it stayed free too long while clients waited")
	}
	if len(but) == 0 {
		return ""
	}
	return ", but " + list(but)
}

func brokenText(rs []result) string {
	t := "damage without an overlap"
	if n := overlaps(rs); n > 0 {
		t = incidents(rs) + ", " + counted(n, "pair of holds", "pairs of holds")
	}
	switch worstGuarantee(rs) {
	case scenario.Kept:
		t += ", guarantee kept"
	case scenario.Broken:
		t += ", guarantee broken"
	default:
		t += ", guarantee unknown"
	}
	return " (" + t + ")"
}

// offered states what became of the arrivals of an open loop.
func offered(e *experiment) []string {
	var out []string
	for _, name := range e.rows {
		for _, n := range e.counts {
			a, _ := arrivals(e.runs[point{name, n}])
			if a.Arrived == 0 {
				continue
			}
			subject := name
			if len(e.counts) > 1 {
				subject += ", " + plural(n, "client", "clients")
			}
			line := fmt.Sprintf("%s/s offered to %s: %s arrived = %s completed + %s dropped + %s in flight at the end.",
				rate(e.load.Rate), subject, count(a.Arrived), count(a.Completed), count(a.Dropped), count(a.InFlight))
			if a.Dropped > 0 {
				line += " The rate is above its capacity."
			}
			out = append(out, line)
		}
	}
	return out
}

func allOf(n int, one, many string) string {
	if n == 1 {
		return "the one " + one
	}
	return fmt.Sprintf("all %d %s", n, many)
}

// calm states which locks kept one holder at a time without faults.
func calm(es []*experiment) []string {
	var safe, runs int
	unsafe := map[string][]string{} // in which experiments
	var names []string
	expected, alone := true, "has an unknown verdict"
	controls := map[string]controlled{}
	for _, e := range es {
		if e.uncontended() || len(e.faults) > 0 {
			continue
		}
		for _, name := range e.rows {
			rs := done(e.of(name))
			if len(rs) == 0 {
				continue
			}
			if rs[0].Backend == reference {
				c, before := control(rs), controls[name]
				c.runs, c.caught, c.broken = c.runs+before.runs, c.caught+before.caught, c.broken || before.broken
				controls[name] = c
				continue
			}
			for _, r := range rs {
				runs++
				switch r.Safety.Verdict {
				case scenario.Safe:
					safe++
				default:
					if r.Safety.Verdict == scenario.Unsafe {
						alone = "was unsafe"
					}
					expected = expected && r.AsExpected != nil && *r.AsExpected
					if unsafe[name] == nil {
						names = append(names, name)
					}
					if where := clean(e.group); !slices.Contains(unsafe[name], where) {
						unsafe[name] = append(unsafe[name], where)
					}
				}
			}
		}
	}
	var out []string
	switch {
	case runs > 0 && safe == runs:
		out = append(out, fmt.Sprintf("Without faults, every lock was safe in %s.", allOf(runs, "contended run", "contended runs")))
	case runs > 0:
		for i, name := range names {
			names[i] = fmt.Sprintf("%s (in %s)", name, list(unsafe[name]))
		}
		line, all := fmt.Sprintf("Without faults, %d of %d contended runs were safe; unsafe or unknown: %s.", safe, runs, list(names)), " All of it was expected."
		if runs == 1 {
			line, all = fmt.Sprintf("Without faults, the one contended run %s: %s.", alone, list(names)), " That was expected."
		}
		if expected {
			line += all
		}
		out = append(out, line)
	}
	if len(controls) > 0 {
		var words []string
		for _, name := range slices.Sorted(maps.Keys(controls)) {
			c, word := controls[name], "accused"
			if c.broken {
				word = "caught"
			}
			words = append(words, fmt.Sprintf("%s: %s %d of %d", name, word, c.caught, c.runs))
		}
		out = append(out, "Controls: "+strings.Join(words, "; ")+".")
	}
	return out
}
