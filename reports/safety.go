package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

// safety: did two clients ever hold one lock, what did that damage, and did
// the lock keep its own word.
func (b *builder) safety(es []*experiment) section {
	s := section{Title: "SAFETY", Lead: "Overlap: two clients held one key at once. A lease that ends while its owner is stopped makes one with its promise kept: unsafe all the same. Unknown is not good."}
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
		t.Cols = append(t.Cols, column{Group: "overlaps", Name: "pairs/inc."},
			column{Name: "verdict", Left: true}, column{Name: "promise", Left: true}, column{Name: "liveness", Left: true})
		if e.guarded() {
			t.Cols = append(t.Cols, column{Group: "plain reg.", Name: "lost"}, column{Group: "plain reg.", Name: "stale"},
				column{Group: "fenced reg.", Name: "lost"}, column{Group: "fenced reg.", Name: "refused"})
		}
		t.Cols = append(t.Cols, column{Group: "longest", Name: "wait"}, column{Group: "as", Name: "expected", Left: true})
		told := e
		if inMatrix {
			told = e.surprising()
		}
		b.rows(&t, told, func(rs []result) []cell { return b.safetyCells(e, done(rs)) })
		t.Below = faultLines(told)
		s.Tables = append(s.Tables, t)
	}
	return s
}

func (b *builder) safetyCells(e *experiment, rs []result) []cell {
	var pairs, incidents int64
	for _, r := range rs {
		pairs += r.Safety.Overlaps
		incidents += r.Safety.OverlapIncidents
	}
	o := cell{Text: count(pairs) + "/" + count(incidents)}
	if pairs > 0 {
		o.Class = bad
	}
	cs := []cell{o}
	for _, a := range answerKinds {
		cs = append(cs, b.answer(rs, a))
	}
	if e.guarded() {
		cs = append(cs, b.registerCells(rs)...)
	}
	cs = append(cs, b.longestWait(e, rs), asExpected(rs))
	return cs
}

// answerKind is one of the three answers, with its values from worst to best.
type answerKind struct {
	name            string
	get             func(scenario.Safety) string
	bad, doubt, yes string
}

var answerKinds = [...]answerKind{
	{"verdict", func(s scenario.Safety) string { return s.Verdict }, scenario.Unsafe, scenario.Undecided, scenario.Safe},
	{"promise", func(s scenario.Safety) string { return s.Promise }, scenario.Broken, scenario.Undecided, scenario.Kept},
	{"liveness", func(s scenario.Safety) string { return s.Liveness }, scenario.Stuck, scenario.Undecided, scenario.Live},
}

// worst gives the worst answer of some runs and how many gave it. What is not
// one of the known words counts as unknown.
func (a answerKind) worst(rs []result) (string, int) {
	n := map[string]int{}
	for _, r := range rs {
		v := a.get(r.Safety)
		if v != a.bad && v != a.yes {
			v = a.doubt
		}
		n[v]++
	}
	for _, v := range []string{a.bad, a.doubt, a.yes} {
		if n[v] > 0 {
			return v, n[v]
		}
	}
	return a.doubt, 0
}

func (b *builder) answer(rs []result, a answerKind) cell {
	v, n := a.worst(rs)
	c := cell{Text: v, Class: a.class(v)}
	if n < len(rs) {
		c.Text += fmt.Sprintf(" %d/%d", n, len(rs))
	}
	if v == a.doubt {
		for _, r := range rs {
			if a.get(r.Safety) == v && r.Safety.Why[a.name] != "" {
				c.Marks = []int{b.note(a.name + " unknown: " + clean(r.Safety.Why[a.name]))}
				break
			}
		}
	}
	return c
}

func (a answerKind) class(v string) class {
	switch v {
	case a.yes:
		return good
	case a.bad:
		return bad
	}
	return warn
}

// registerCells shows the guarded counter with and without fencing, side by
// side: what was lost, and what the tokens kept out.
func (b *builder) registerCells(rs []result) []cell {
	plain, np := registers(rs, "plain")
	fenced, nf := registers(rs, "fenced")
	lost := func(reg scenario.Register, n int, what string) cell {
		switch {
		case n == 0:
			return b.dash(what)
		case reg.LostUpdates > 0:
			return cell{Text: count(reg.LostUpdates), Class: bad}
		}
		return cell{Text: "0"}
	}
	noGuard, noTokens := "no guarded register in this workload", "no fenced register: the recipe gives no fencing tokens"
	if np == 0 {
		noTokens = noGuard
	}
	if s := why(rs, "lost_updates"); np == 0 && s != "the run gives no reason" {
		noGuard, noTokens = "lost updates: "+s, "lost updates: "+s
	}
	stale := cell{Text: none, Class: mute}
	switch {
	case np == 0:
		stale = b.dash(noGuard)
	case plain.StaleWrites == nil:
		stale = b.dash("no stale writes can be seen: the recipe gives no fencing tokens")
	default:
		stale = cell{Text: count(*plain.StaleWrites)}
		if *plain.StaleWrites > 0 {
			stale.Class = bad
		}
	}
	rejected := cell{Text: count(fenced.Rejected)}
	if nf == 0 {
		rejected = b.dash(noTokens)
	}
	return []cell{lost(plain, np, noGuard), stale, lost(fenced, nf, noTokens), rejected}
}

// registers sums the accounts of one register over runs.
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

// fewWaits is of how many waits the longest says something.
const fewWaits = 20

// longestWait is the longest that anybody waited for the key: around the
// faults where there are some, else of all acquires.
func (b *builder) longestWait(e *experiment, rs []result) cell {
	var longest int64
	for _, r := range rs {
		for _, f := range r.Faults {
			// Who gives up and asks again has waited all the time.
			longest = max(longest, f.LongestWaitNS, f.OutageNS)
		}
		if len(e.faults) == 0 && r.Acquire != nil && r.Acquire.Count >= fewWaits {
			longest = max(longest, r.Acquire.Max)
		}
	}
	if longest == 0 {
		return b.dash(fmt.Sprintf("the longest wait was not measured, or was one of fewer than %d: those that began before the window are not among them", fewWaits))
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
	case n[outcomeOK] > 0:
		return cell{Text: "yes", Class: good}
	}
	return cell{Text: none, Class: mute}
}

// faultLines says what the faults did, a line for each way they came out.
func faultLines(e *experiment) []string {
	if len(e.faults) == 0 {
		return nil
	}
	var lines, waited, took []string
	var missed []string
	for _, name := range e.rows {
		rs := done(e.of(name))
		n, hit, others := 0, 0, 0
		for _, r := range rs {
			for _, f := range r.Faults {
				n++
				switch {
				case f.Status != "effective":
					missed = append(missed, fmt.Sprintf("%s (%s)", clean(r.Name), or(clean(f.Reason), "the run gives no reason")))
				case kills(f): // what became of the dead one's key stands under TAKEOVER
				case !lasts(f): // there is no while
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
	if len(took) > 0 {
		lines = append(lines, "While the fault lasted, somebody else was granted the key: "+list(took)+".")
	}
	if len(waited) > 0 {
		lines = append(lines, "Nobody else was granted it, everybody waited: "+list(waited)+".")
	}
	if len(missed) > 0 {
		lines = append(lines, "The fault missed, so nothing is proved: "+strings.Join(missed, "; ")+".")
	}
	return lines
}

// kills reports whether a fault ended its client: then there is no while in
// which it lasted.
func kills(f scenario.FaultResult) bool {
	what, _ := scenario.ParseFaultKind(f.Kind)
	return what.KillsClient()
}

// lasts reports whether a fault lay on one client for some time.
func lasts(f scenario.FaultResult) bool {
	what, _ := scenario.ParseFaultKind(f.Kind)
	return what.OnClient() && !what.Instant()
}

// surprising is what of an experiment did not come out as expected.
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
		if r.Safety.Verdict != scenario.Safe || r.Safety.Promise != scenario.Kept || r.Safety.Liveness != scenario.Live {
			return false
		}
	}
	return true
}

// keptOne sums up the answers of contended runs, which have no table of their
// own where all is well.
func keptOne(e *experiment) []string {
	rs := done(e.all())
	if len(rs) == 0 {
		return nil
	}
	if e.onlyControls() {
		return nil
	}
	if allSafe(e) {
		return []string{fmt.Sprintf("One holder at a time in %s: verdict safe, promise kept, liveness live.", plural(len(rs), "run", "runs"))}
	}
	return []string{"Not every run was safe, kept and live: see SAFETY."}
}
