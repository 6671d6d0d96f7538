package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/scenario"
)

// safety: did two clients hold the lock at once, what damage did it do, and did
// the lock keep its guarantee.
func (b *builder) safety(es []*experiment) section {
	s := section{Title: "SAFETY", Lead: "Overlap: two clients held the same key at once, counted in incidents, and in pairs of holds, of which one pause can make many. A lock can be unsafe within its guarantee: its lease expires while the holder is paused. Unknown means not proven safe."}
	matrix := matrixed(es)
	for _, e := range es {
		if e.uncontended() || len(e.faults) == 0 && !e.guarded() && (allSafe(e) || e.onlyControls()) {
			continue
		}
		inMatrix := matrix && len(e.faults) > 0
		if c := asExpected(done(e.all())).Class; inMatrix && (c == good || c == mute) {
			continue
		}
		t := table{Title: e.heading(), Head: "recipe", Cols: e.clientsColumn()}
		t.Cols = append(t.Cols, answerColumns()...)
		t.Cols = append(t.Cols, column{Group: "overlaps", Name: "time"}, column{Group: "overlaps", Name: "pairs"})
		if e.guarded() {
			t.Cols = append(t.Cols, column{Group: "unfenced counter", Name: "lost"}, column{Group: "unfenced counter", Name: "stale"},
				column{Group: "fenced counter", Name: "lost"}, column{Group: "fenced counter", Name: "rejected"})
		}
		t.Cols = append(t.Cols, column{Group: "longest", Name: "wait"}, column{Group: "as", Name: "expected", Left: true})
		shown := e
		if inMatrix {
			shown = e.surprising()
		}
		b.rows(&t, shown, func(rs []result) []cell { return b.safetyCells(e, done(rs)) })
		t.Below = append(leaseLine(shown), faultLines(shown)...)
		s.Tables = append(s.Tables, t)
	}
	return s
}

func (b *builder) safetyCells(e *experiment, rs []result) []cell {
	var ns int64
	for _, r := range rs {
		ns += r.Safety.OverlapNS
	}
	cs := append(b.answerCells(rs), cell{Text: nanos(float64(ns))}, cell{Text: count(overlaps(rs))})
	if e.guarded() {
		cs = append(cs, b.registerCells(rs)...)
	}
	cs = append(cs, b.longestWait(e, rs), asExpected(rs))
	return cs
}

// answerKind is one of the three answers.
type answerKind struct{ scenario.AnswerKind }

func answerKinds() (list [3]answerKind) {
	for i, a := range scenario.Answers() {
		list[i] = answerKind{a}
	}
	return list
}

// worstVerdict, worstGuarantee and worstLiveness are the worst answers of some runs.
func worstVerdict(rs []result) string   { v, _ := answerKinds()[0].worst(rs); return v }
func worstGuarantee(rs []result) string { v, _ := answerKinds()[1].worst(rs); return v }
func worstLiveness(rs []result) string  { v, _ := answerKinds()[2].worst(rs); return v }

// why is the reason for the answer.
func (a answerKind) why(s scenario.Safety) string { return clean(s.Why[a.Key]) }

// worst is the worst answer of some runs, and in how many runs it occurs. A value
// that is not in the schema counts as unknown.
func (a answerKind) worst(rs []result) (string, int) {
	n := map[string]int{}
	for _, r := range rs {
		v := a.Of(r.Safety)
		if v != a.Bad && v != a.Good {
			v = scenario.Undecided
		}
		n[v]++
	}
	for _, v := range []string{a.Bad, scenario.Undecided, a.Good} {
		if n[v] > 0 {
			return v, n[v]
		}
	}
	return scenario.Undecided, 0
}

func (b *builder) answer(rs []result, a answerKind) cell {
	v, n := a.worst(rs)
	c := cell{Text: v, Class: a.class(v)}
	if n < len(rs) {
		c.Text += fmt.Sprintf(" %d/%d", n, len(rs))
	}
	if v == scenario.Undecided {
		for _, r := range rs {
			if why := a.why(r.Safety); a.Of(r.Safety) == v && why != "" {
				c.Marks = []int{b.note(a.Name + " unknown: " + why)}
				break
			}
		}
	}
	return c
}

func (a answerKind) class(v string) class {
	switch v {
	case a.Good:
		return good
	case a.Bad:
		return bad
	}
	return warn
}

// registerCells shows the counter without and with fencing: updates lost, stale
// writes accepted, and writes rejected by their token.
func (b *builder) registerCells(rs []result) []cell {
	plain, np := registers(rs, "plain")
	fenced, nf := registers(rs, "fenced")
	lost := func(reg scenario.Register, n int, what string) cell {
		if n == 0 {
			return b.dash(what)
		}
		return counter(reg.LostUpdates, bad)
	}
	noGuard, noTokens := "this workload has no guarded counter", "no fenced counter: the recipe has no fencing tokens"
	if np == 0 {
		noTokens = noGuard
	}
	if s := why(rs, "lost_updates"); np == 0 && s != noReason {
		noGuard, noTokens = "lost updates: "+s, "lost updates: "+s
	}
	var stale cell
	switch {
	case np == 0:
		stale = b.dash(noGuard)
	case plain.StaleWrites == nil:
		stale = b.dash("stale writes cannot be detected: the recipe has no fencing tokens")
	default:
		stale = counter(*plain.StaleWrites, bad)
	}
	rejected := cell{Text: count(fenced.Rejected)}
	if nf == 0 {
		rejected = b.dash(noTokens)
	}
	return []cell{lost(plain, np, noGuard), stale, lost(fenced, nf, noTokens), rejected}
}

// registers sums up one counter over runs.
func registers(rs []result, name string) (scenario.Register, int) {
	sum, n := scenario.Register{Name: name}, 0
	for _, r := range rs {
		for _, g := range r.Safety.Registers {
			if g.Name != name {
				continue
			}
			n++
			sum.Acknowledged += g.Acknowledged
			sum.Final += g.Final
			sum.LostUpdates += g.LostUpdates
			sum.Rejected += g.Rejected
			if g.StaleWrites != nil {
				if sum.StaleWrites == nil {
					sum.StaleWrites = new(int64)
				}
				*sum.StaleWrites += *g.StaleWrites
			}
		}
	}
	return sum, n
}

// fewWaits is the number of waits below which the longest means little.
const fewWaits = 20

// longestWait is the longest wait for the key: around the faults if there are
// any, else of all acquires.
func (b *builder) longestWait(e *experiment, rs []result) cell {
	var longest int64
	for _, r := range rs {
		for _, f := range r.Faults {
			// A client that times out and retries waits all the time.
			longest = max(longest, f.LongestWaitNS, f.OutageNS)
		}
		if len(e.faults) == 0 && r.Acquire != nil && r.Acquire.Count >= fewWaits {
			longest = max(longest, r.Acquire.Max)
		}
	}
	if longest == 0 {
		return b.dash(fmt.Sprintf("the longest wait was not measured, or fewer than %d acquires began in the measured window", fewWaits))
	}
	return cell{Text: nanos(float64(longest))}
}

func asExpected(rs []result) cell {
	n := map[outcome]int{}
	for _, r := range rs {
		n[outcomeOf(r)]++
	}
	switch {
	case n[outcomeWrong] > 0:
		return cell{Text: "NO", Class: bad}
	case n[outcomeInconclusive] > 0:
		return cell{Text: "unknown", Class: warn}
	case n[outcomeKnown] > 0:
		return cell{Text: "known to fail", Class: warn}
	case n[outcomeOK] > 0:
		return cell{Text: "yes", Class: good}
	}
	return cell{Text: none, Class: mute}
}

// outlived counts the holds that ended after their lease; "" if no lease is known.
func outlived(rs []result) string {
	var sum scenario.LeasedHolds
	for _, r := range rs {
		if l := r.Leased; l != nil {
			sum.Holds, sum.Outlived, sum.WorstNS = sum.Holds+l.Holds, sum.Outlived+l.Outlived, max(sum.WorstNS, l.WorstNS)
		}
	}
	switch {
	case sum.Holds == 0:
		return ""
	case sum.Outlived == 0:
		return fmt.Sprintf("0 of %s", count(sum.Holds))
	}
	return fmt.Sprintf("%s of %s, by up to %s", count(sum.Outlived), count(sum.Holds), nanos(float64(sum.WorstNS)))
}

// leaseLine states how many holds outlived their lease, for the recipes with such
// holds.
func leaseLine(e *experiment) []string {
	var parts []string
	for _, name := range e.rows {
		rs := done(e.of(name))
		if slices.ContainsFunc(rs, func(r result) bool { return r.Leased != nil && r.Leased.Outlived > 0 }) {
			parts = append(parts, name+" ("+outlived(rs)+")")
		}
	}
	return listed("Holds that outlived their lease", parts)
}

// faultLines states whether other clients were granted the key during the fault.
func faultLines(e *experiment) []string {
	if len(e.faults) == 0 {
		return nil
	}
	var waited, took, missed []string
	for _, name := range e.rows {
		rs := done(e.of(name))
		n, hit, others := 0, 0, 0
		for _, r := range rs {
			for _, f := range r.Faults {
				n++
				switch {
				case f.Status != "effective":
					missed = append(missed, fmt.Sprintf("%s (%s)", clean(r.Name), or(clean(f.Reason), noReason)))
				case kills(f): // see TAKEOVER
				case !lasts(f):
				case f.OthersGrantedNS > 0:
					hit, others = hit+1, others+1
				default:
					hit++
				}
			}
		}
		switch {
		case hit == 0:
		case others == hit:
			took = append(took, name)
		case others == 0:
			waited = append(waited, name)
		default:
			took = append(took, fmt.Sprintf("%s (%d of %d)", name, others, hit))
		}
	}
	lines := append(listed("Another client was granted the key during the fault", took), listed("No other client was granted the key during the fault", waited)...)
	if len(missed) > 0 {
		lines = append(lines, "The fault missed its target, so the result proves nothing: "+strings.Join(missed, "; ")+".")
	}
	return lines
}

// kills reports whether a fault ended its client: such a fault has no duration.
func kills(f scenario.FaultResult) bool {
	what, _ := chaos.ParseKind(f.Kind)
	return what.KillsClient()
}

// lasts reports whether a fault affected one client for some time.
func lasts(f scenario.FaultResult) bool {
	what, _ := chaos.ParseKind(f.Kind)
	return what.OnClient() && !what.Instant()
}

// surprising is the part of an experiment that did not pass.
func (e *experiment) surprising() *experiment {
	some := *e
	some.rows = slices.DeleteFunc(slices.Clone(e.rows), func(name string) bool {
		c := asExpected(done(e.of(name))).Class
		return c == good || c == mute
	})
	return &some
}

func allSafe(e *experiment) bool {
	for _, r := range done(e.all()) {
		if !r.Safety.AllGood() {
			return false
		}
	}
	return true
}

// keptOne sums up the answers of contended runs, which have no safety table if all
// are good.
func keptOne(e *experiment) []string {
	rs := done(e.all())
	if len(rs) == 0 || e.onlyControls() {
		return nil
	}
	if allSafe(e) {
		return []string{fmt.Sprintf("One holder at a time in %s: verdict safe, guarantee kept, liveness live.", plural(len(rs), "run", "runs"))}
	}
	return []string{"Some runs were not safe, kept and live: see SAFETY."}
}

func (b *builder) answerCells(rs []result) []cell {
	var cs []cell
	for _, a := range answerKinds() {
		cs = append(cs, b.answer(rs, a))
	}
	var n int64
	for _, r := range rs {
		n += r.Safety.OverlapIncidents
	}
	return append(cs, counter(n, bad))
}

func answerColumns() []column {
	return []column{{Name: "verdict", Left: true}, {Name: "guarantee", Left: true}, {Name: "liveness", Left: true}, {Group: "overlaps", Name: "incidents"}}
}

func filled(c cell, n int) []cell { return slices.Repeat([]cell{c}, n) }
