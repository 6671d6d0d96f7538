package reports

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/printable"
	"github.com/lockbench/lockbench/internal/scenario"
)

// detail is everything about one scenario.
type detail struct {
	ID         string
	Name       string
	Summary    string
	Outcome    string
	Class      class
	Open       bool   // shown unfolded: it did not pass
	Short      bool   // shown as one line
	Explain    string // the command that draws its violation, where the page does not
	Reason     string
	Surprises  []string
	Answers    []answerLine
	Numbers    []fact
	Latencies  []latencyRow
	Registers  []registerRow
	Properties []propertyRow
	Causes     []string
	Witnesses  []witnessView
	Others     []witnessView // further violations, without their calls
	Timeline   *timeline
	Faults     [][]fact
	Unmeasured []fact
	Warnings   []string
	Damage     []string
	Links      []link
}

type answerLine struct {
	Name, Value string
	Class       class
	Why         string
}

type latencyRow struct {
	Name  string
	Cells []string
}

type registerRow struct{ Name, Acknowledged, Final, Lost, Stale, Rejected string }

type witnessView struct {
	Class, Sentence, Cause, Length string
	ID                             string // of its band in the timeline, if it has one
	Calls                          []callView
}

// callView is a call in words; ID is that of its bar in the timeline, if it has one.
type callView struct{ ID, Text string }

// manyScenarios is the number from which on a report keeps to what a reader must
// see: of the repeats that passed, the worst is shown in full and the others in a
// line; it has no tables of numbers, and of violations of one kind by one lock only
// the first has a timeline. All is in result.json.
const manyScenarios = 200

func details(r run) []detail {
	var out []detail
	many := len(r.doc.Scenarios) >= manyScenarios
	repeats := map[string][]result{}
	of := func(res result) string { return fmt.Sprint(res.Group, "\x00", label(res), res.Clients) }
	for _, res := range r.doc.Scenarios {
		repeats[of(res)] = append(repeats[of(res)], res)
	}
	drawn := map[string]bool{}
	for i, res := range r.doc.Scenarios {
		d := detailOf(r, i, res)
		if many && !d.Open {
			d.Numbers, d.Latencies, d.Unmeasured, d.Warnings, d.Links, d.Others = nil, nil, nil, nil, nil, nil
			d.Short = len(repeats[of(res)]) > 1 && worstOf(repeats[of(res)]).Name != res.Name
			if d.Timeline != nil && !d.Short {
				w := res.Safety.Witnesses[0]
				kind := label(res) + "\x00" + w.Class + "\x00" + w.Cause
				if drawn[kind] {
					d.Timeline = nil
					d.Witnesses[0].unlink()
					d.Explain = "lockbench check " + scenario.DirScenarios + "/" + d.Name + " --explain 1"
				}
				drawn[kind] = true
			}
		}
		out = append(out, d)
	}
	return out
}

// unlink removes the links to a timeline that is not in the page.
func (v *witnessView) unlink() {
	v.ID = ""
	for i := range v.Calls {
		v.Calls[i].ID = ""
	}
}

// worst is the scenario whose violation a reader must see first, or -1.
func worst(d scenario.Document) int {
	best := -1
	for i, r := range d.Scenarios {
		if len(r.Safety.Witnesses) > 0 && (best < 0 || slices.Compare(gravity(r), gravity(d.Scenarios[best])) > 0) {
			best = i
		}
	}
	return best
}

// worstOf is the run to look at first.
func worstOf(rs []result) result {
	return slices.MaxFunc(rs, func(a, b result) int { return slices.Compare(gravity(a), gravity(b)) })
}

// gravity orders runs: one that was not as expected before one that was, then unsafe
// before broken, stuck and unknown, and the longest overlap.
func gravity(r result) []int64 {
	g := []int64{0, 0}
	if r.Backend != reference {
		g[0] = 1
	}
	if outcomeOf(r) == outcomeWrong {
		g[1] = 1
	}
	for _, a := range answerKinds() {
		g = append(g, map[string]int64{a.Bad: 1}[a.Of(r.Safety)])
	}
	if r.Safety.Verdict != scenario.Safe {
		g = append(g, 1)
	}
	return append(g, r.Safety.OverlapNS)
}

func detailOf(run run, i int, r result) detail {
	o := outcomeOf(r)
	d := detail{ID: fmt.Sprintf("s%d", i+1), Name: or(clean(r.Name), clean(r.Recipe)), Outcome: string(o), Reason: clean(r.Reason), Unmeasured: pairs(r.Unmeasured)}
	d.Summary = fmt.Sprintf("%s · %s · %s", label(r), clean(r.Workload.Kind), plural(r.Clients, "client", "clients"))
	switch o {
	case outcomeOK:
		d.Class = good
	case outcomeNone:
		d.Class = mute
	case outcomeWrong, outcomeFailed:
		d.Class, d.Open = bad, true
	default:
		d.Class, d.Open = warn, o == outcomeInconclusive
	}
	for _, s := range r.Surprises {
		d.Surprises = append(d.Surprises, clean(s))
	}
	d.Properties = propertyRows(r)
	for _, s := range r.Warnings {
		d.Warnings = append(d.Warnings, clean(s))
	}
	dir := scenario.DirScenarios + "/" + r.Name + "/"
	for _, l := range []link{{scenario.FileScenario, "specification"}, {scenario.FileHistory, "history"}, {scenario.FileLatency, "histograms"}, {scenario.FileFaults, "faults"}, {scenario.FileSamples, "samples"}, {scenario.FileProperties, "properties"}} {
		if r.Name != "" && run.has(dir+l.Path) {
			d.Links = append(d.Links, link{dir + l.Path, l.What})
		}
	}
	if measuresProperties(r) {
		d.Unmeasured = nil // there was no load
		return d
	}
	if r.Status != scenario.StatusDone && !cut(r) {
		return d
	}
	for _, a := range answerKinds() {
		v := or(clean(a.Of(r.Safety)), scenario.Undecided)
		d.Answers = append(d.Answers, answerLine{a.Name, v, a.class(v), a.why(r.Safety)})
	}
	d.Numbers = numbers(r)
	for _, l := range []struct {
		name string
		of   *scenario.Latency
	}{{"acquire (service)", r.Acquire}, {"response (from the intended start)", r.Response}, {"release", r.Release}, {"handoff", r.Handoff}, {"hold", r.HoldNS}} {
		if h := l.of; h != nil && h.Count > 0 {
			row := latencyRow{Name: l.name}
			for _, v := range []int64{h.P50, h.P90, h.P95, h.P99, h.P999, h.Max} {
				row.Cells = append(row.Cells, nanos(float64(v)))
			}
			row.Cells = append(row.Cells, nanos(h.Mean), count(h.Count))
			d.Latencies = append(d.Latencies, row)
		}
	}
	for _, g := range r.Safety.Registers {
		d.Registers = append(d.Registers, registerRow{clean(g.Name), count(g.Acknowledged), count(g.Final), count(g.LostUpdates), counted0(g.StaleWrites), count(g.Rejected)})
	}
	for _, c := range r.Safety.Causes {
		text := fmt.Sprintf("%s: %s", clean(c.Cause), count(c.Count))
		if c.Breaches > 0 {
			text += ", and " + counted(c.Breaches, "breach", "breaches")
		}
		d.Causes = append(d.Causes, text)
	}
	shown := r.Safety.Witnesses
	if len(run.doc.Scenarios) >= manyScenarios {
		shown = shown[:min(len(shown), fullWitnesses)]
	}
	if t, ok := drawTimeline(d.ID, shown, r.Faults); ok {
		d.Timeline = &t
	}
	for i, w := range r.Safety.Witnesses {
		v := viewWitness(d.ID, i, w, d.Timeline)
		if i < fullWitnesses {
			d.Witnesses = append(d.Witnesses, v)
		} else {
			d.Others = append(d.Others, v)
		}
	}
	for _, f := range r.Faults {
		d.Faults = append(d.Faults, faultFacts(f))
	}
	for _, s := range r.Safety.Damage {
		d.Damage = append(d.Damage, clean(s))
	}
	return d
}

func counted0(n *int64) string {
	if n == nil {
		return none
	}
	return count(*n)
}

func numbers(r result) []fact {
	fs := []fact{{"server", strings.TrimSpace(clean(r.Server) + " " + clean(r.Version))}, {"durability", clean(r.Durability)}}
	e := experiments([]result{r})[0]
	fs = append(fs, fact{"load", e.conditions()}, fact{"wait policy", clean(r.WaitPolicy)}, fact{"hold of a dead client ends by", clean(r.Bound)})
	if !r.TTLApplies {
		fs = append(fs, fact{"TTL", "not used by this recipe"})
	}
	fs = append(fs, fact{"seed", fmt.Sprint(r.Seed)}, fact{"worker processes", fmt.Sprint(r.Workers)},
		fact{"acquires", fmt.Sprintf("%s held, %s busy, %s failed", count(r.Acquired), count(r.Busy), count(r.Failed-r.Busy+r.Settled))}, fact{"calls of unknown outcome", count(r.Unknown)})
	for _, m := range []struct {
		name string
		m    metric
	}{{"throughput per s", mThroughput()}, {"fairness (Jain)", mFairness()}, {"requests per acquire", mRequests()}, {"server CPU s per 1000", mServerCPU()}, {"client CPU s per 1000", mClientCPU()},
		{"tries per s", mTries()}, {"woken per release", mWoken()}, {"waiters overtaken", mInversions()}} {
		if v, ok := m.m.get(r); ok {
			fs = append(fs, fact{m.name, m.m.format(v)})
		}
	}
	if r.PerClientMin != nil && r.PerClientMax != nil {
		fs = append(fs, fact{"grants per client", count(*r.PerClientMin) + " to " + count(*r.PerClientMax)})
	}
	if r.UnavailableNS != nil {
		fs = append(fs, fact{"longest time without a grant", nanos(float64(*r.UnavailableNS))})
	}
	if l := r.CodeLines; l != nil {
		fs = append(fs, fact{"lines of code", fmt.Sprintf("%s own, %s shared with the other recipes of its backend", count(l.Recipe), count(l.Shared))})
	}
	if l := r.Leased; l != nil {
		fs = append(fs, fact{"holds that outlived their lease", outlived([]result{r})})
	}
	if t := r.Takeover; t != nil {
		fs = append(fs, fact{"keys of dead clients granted again", fmt.Sprintf("%s of %s", count(t.Granted), count(t.Holds))})
	}
	if r.RecoveryNS != nil {
		fs = append(fs, fact{"heal to the next grant", nanos(float64(*r.RecoveryNS))})
	}
	if a := r.Arrivals; a != nil {
		fs = append(fs, fact{"arrivals", fmt.Sprintf("%s = %s completed + %s dropped + %s in flight; pacer late p99 %s", count(a.Arrived), count(a.Completed), count(a.Dropped), count(a.InFlight), nanos(float64(a.PacerLateNS)))})
	}
	s := r.Safety
	fs = append(fs, fact{"overlaps", fmt.Sprintf("%s pairs in %s, %s in total", count(s.Overlaps), counted(s.OverlapIncidents, "incident", "incidents"), nanos(float64(s.OverlapNS)))},
		fact{"breaches of the guarantee", count(s.Breaches)}, fact{"contended grants", count(s.ContendedGrants)},
		fact{"token regressions", counted0(s.TokenRegressions)}, fact{"lost updates", counted0(s.LostUpdates)}, fact{"stale writes accepted", counted0(s.StaleWrites)})
	if l := s.LossSignals; l != nil {
		text := fmt.Sprintf("%d in time, %d late, %d never", l.InTime, l.Late, l.Missing)
		if l.Late > 0 {
			text += fmt.Sprintf(" (at most %s after the next grant)", nanos(float64(l.WorstLateNS)))
		}
		fs = append(fs, fact{"loss reported", text})
	}
	if s.Orphans != nil {
		text := count(*s.Orphans)
		if how := s.Why["orphans"]; how != "" {
			text += " (" + how + ")"
		}
		fs = append(fs, fact{"orphans: keys taken without a holder, or left on a server", text})
	}
	if s.TakeoverBoundNS > 0 {
		fs = append(fs, fact{"longest wait for a free key", fmt.Sprintf("%s (bound %s)", nanos(float64(s.LongestStuckNS)), nanos(float64(s.TakeoverBoundNS)))})
	}
	return slices.DeleteFunc(fs, func(f fact) bool { return f.Value == "" })
}

// fullWitnesses is the number of violations of a scenario that are shown with their
// calls.
const fullWitnesses = 1

func viewWitness(id string, i int, w scenario.Witness, t *timeline) witnessView {
	v := witnessView{Class: clean(w.Class), Sentence: clean(w.Sentence), Cause: clean(w.Cause)}
	if w.LengthNS > 0 {
		v.Length = nanos(float64(w.LengthNS))
	}
	if band := fmt.Sprintf("v-%s-%d", id, i+1); t.has(band) {
		v.ID = band
	}
	for _, c := range w.Calls {
		call := callView{Text: viewCall(c)}
		if bar := callID(id, c); t.has(bar) {
			call.ID = bar
		}
		v.Calls = append(v.Calls, call)
	}
	return v
}

func viewCall(c scenario.WitnessCall) string {
	if c.Client == history.Controller {
		return fmt.Sprintf("lockbench: %s at %s", clean(c.Kind), stamp(c.InvokeNS))
	}
	line := fmt.Sprintf("%s, call %d: %s at %s", or(printable.Name(c.Name), fmt.Sprintf("client %d", c.Client)), c.Seq, clean(c.Kind), stamp(c.InvokeNS))
	if c.ReturnNS != 0 {
		line += fmt.Sprintf(", %s at %s", clean(c.Outcome), stamp(c.ReturnNS))
	} else {
		line += ", no return"
	}
	if c.Fence != 0 {
		line += fmt.Sprintf(", token %d", c.Fence)
	}
	if c.LeaseEndNS != 0 {
		line += ", lease until " + stamp(c.LeaseEndNS)
	}
	return line + ", attempt " + clean(c.Attempt[:min(len(c.Attempt), 8)])
}

func faultFacts(f scenario.FaultResult) []fact {
	at := func(ns int64) string {
		if ns == 0 {
			return ""
		}
		return stamp(ns)
	}
	length := func(ns int64) string {
		if ns <= 0 {
			return ""
		}
		return nanos(float64(ns))
	}
	others := "no, they waited"
	if f.OthersGrantedNS > 0 {
		others = "yes, at " + stamp(f.OthersGrantedNS)
	}
	if f.Status != "effective" || kills(f) || !lasts(f) {
		others = ""
	}
	fs := []fact{{"fault", clean(f.Kind)}, {"step", clean(f.Step)}, {"status", clean(f.Status)}, {"reason", clean(f.Reason)}, {"target", clean(f.Target)}, {"mechanism", clean(f.Mechanism)},
		{"armed", stamp(f.ArmedNS)}, {"injected", at(f.InjectedNS)}, {"healed", at(f.HealedNS)}, {"first grant after the heal", at(f.FirstGrantNS)},
		{"effect on connections", clean(f.Effect)}, {"longest time without a grant", length(f.OutageNS)}, {"from its end to the next grant", length(f.RecoveryNS)},
		{"granted to others during it", others}, {"longest wait during it", length(f.LongestWaitNS)}}
	return slices.DeleteFunc(fs, func(f fact) bool { return f.Value == "" })
}

func pairs(m map[string]string) []fact {
	var fs []fact
	for _, k := range slices.Sorted(maps.Keys(m)) {
		fs = append(fs, fact{clean(k), or(clean(m[k]), none)})
	}
	return fs
}
