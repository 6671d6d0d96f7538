package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/printable"
	"github.com/lockbench/lockbench/internal/scenario"
)

type result = scenario.Result

// experiment is a set of results that belong in one table: same group of the
// suite, same load and same faults; recipe, number of clients and repeat differ. It
// does not depend on names, so that any suite can be reported.
type experiment struct {
	id     identity
	group  string
	load   scenario.Load
	ttl    time.Duration
	faults []string
	rows   []string // labels of the subjects, in the suite's order
	counts []int    // numbers of clients, rising
	runs   map[point][]result
}

type point struct {
	row     string
	clients int
}

// identity is the same for matching experiments of several runs.
type identity struct {
	setting
	faultNames string
}

// setting holds what is equal within an experiment.
type setting struct {
	group, kind, dist, hold, think, arrival string
	keys, depth, batch, connections         int
	zipf, rate, readers                     float64
	limit, ttl, delay                       time.Duration
	watch                                   bool
}

func settingOf(r result) setting {
	l := r.Workload
	s := setting{
		group: r.Group, kind: l.Kind, dist: l.Distribution, hold: l.Hold.String(), think: l.Think.String(), arrival: l.Arrival,
		keys: l.Keys, zipf: l.ZipfS, rate: l.Rate, limit: l.AcquireLimit.D(), ttl: r.TTL.D(), delay: r.LockDelay.D(), watch: l.WatchLease,
		depth: l.Depth, batch: l.Batch, connections: l.Connections, readers: l.Readers,
	}
	if l.Kind == scenario.Uncontended || l.Kind == scenario.Takeover {
		s.keys = 0 // follows the number of clients
	}
	return s
}

func faultKinds(r result) []string {
	var kinds []string
	for _, f := range r.Faults {
		kind := f.Kind
		if f.Step != "" {
			kind += " at " + f.Step
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// experiments sorts results into experiments, in the order of appearance.
func experiments(results []result) []*experiment {
	byID := map[identity]*experiment{}
	bySetting := map[setting]*experiment{}
	var all []*experiment
	add := func(r result) {
		s := settingOf(r)
		kinds := faultKinds(r)
		key := identity{s, strings.Join(kinds, "+")}
		e := byID[key]
		if e == nil && r.Status != scenario.StatusDone && len(kinds) == 0 {
			// A scenario that did not run has no faults: match it by its setting.
			e = bySetting[s]
		}
		if e == nil {
			e = &experiment{id: key, group: r.Group, load: r.Workload, ttl: r.TTL.D(), faults: kinds, runs: map[point][]result{}}
			byID[key] = e
			all = append(all, e)
			if bySetting[s] == nil {
				bySetting[s] = e
			}
		}
		p := point{label(r), r.Clients}
		e.runs[p] = append(e.runs[p], r)
		if !slices.Contains(e.rows, p.row) {
			e.rows = append(e.rows, p.row)
		}
		if !slices.Contains(e.counts, p.clients) {
			e.counts = append(e.counts, p.clients)
		}
	}
	// Finished scenarios first, so that the others can be matched; then sort the
	// rows into the order of the suite.
	for _, r := range results {
		if r.Status == scenario.StatusDone {
			add(r)
		}
	}
	for _, r := range results {
		if r.Status != scenario.StatusDone {
			add(r)
		}
	}
	order, first := map[string]int{}, map[string]int{}
	for i, r := range results {
		if l := label(r); order[l] == 0 {
			order[l] = i + 1
		}
		if first[r.Group] == 0 {
			first[r.Group] = i + 1
		}
	}
	for _, e := range all {
		slices.SortStableFunc(e.rows, func(a, b string) int { return order[a] - order[b] })
		slices.Sort(e.counts)
	}
	slices.SortStableFunc(all, func(a, b *experiment) int { return first[a.group] - first[b.group] })
	return all
}

// label is the recipe, and its topology if that is not single.
func label(r result) string {
	l := or(r.Recipe, r.Backend)
	if r.Topology != "" && r.Topology != "single" {
		l += " (" + clean(r.Topology) + ")"
	}
	return printable.Name(l)
}

// of returns the results of one subject, at all client counts.
func (e *experiment) of(row string) []result {
	var rs []result
	for _, n := range e.counts {
		rs = append(rs, e.runs[point{row, n}]...)
	}
	return rs
}

func (e *experiment) all() []result {
	var rs []result
	for _, row := range e.rows {
		rs = append(rs, e.of(row)...)
	}
	return rs
}

func done(rs []result) []result {
	var out []result
	for _, r := range rs {
		if r.Status == scenario.StatusDone {
			out = append(out, r)
		}
	}
	return out
}

// absent is the reason why a subject has no numbers at all, or "".
func absent(rs []result) string {
	if len(done(rs)) > 0 || len(rs) == 0 {
		return ""
	}
	return absence(rs[max(0, slices.IndexFunc(rs, cut))])
}

// cut reports whether an unfinished run has figures or a violation.
func cut(r result) bool {
	return r.Status != scenario.StatusDone && (r.Acquired > 0 || r.Safety.Verdict == scenario.Unsafe)
}

func absence(r result) string {
	reason := clean(r.Reason)
	if reason == "" {
		reason = noReason
	}
	status := clean(string(r.Status))
	if status == "" {
		status = "not run"
	}
	return status + ": " + reason + soFar(r)
}

// soFar lists the findings of an unfinished run: a violation counts however short
// the run was. Only an interrupted run has a meaningful speed.
func soFar(r result) string {
	if !cut(r) {
		return ""
	}
	var seen []string
	if r.Status == scenario.StatusInterrupted && r.Throughput != nil {
		text := fmt.Sprintf("%s acquires/s in %s", rate(*r.Throughput), nanos(float64(r.DurationNS)))
		if h := r.Acquire; h != nil && h.Count >= fewForP99 {
			text += ", wait p99 " + nanos(float64(h.P99))
		}
		seen = append(seen, text)
	}
	for _, a := range answerKinds() {
		if v := a.Of(r.Safety); v == a.Bad {
			seen = append(seen, a.Name+" "+v)
		}
	}
	if n := r.Safety.Overlaps; n > 0 {
		seen = append(seen, counted(n, "overlap", "overlaps"))
	}
	if len(seen) == 0 {
		return ""
	}
	return " (until then: " + strings.Join(seen, ", ") + ")"
}

// repeats is the largest number of finished runs of any point.
func (e *experiment) repeats() int {
	n := 0
	for _, rs := range e.runs {
		n = max(n, len(done(rs)))
	}
	return n
}

func (e *experiment) uncontended() bool { return e.load.Kind == "uncontended" && len(e.faults) == 0 }
func (e *experiment) guarded() bool     { return e.load.Kind == "guarded-counter" }
func (e *experiment) open() bool        { return e.load.Arrival != "" && e.load.Arrival != "closed" }

// conditions is a line with the conditions of the measurement.
func (e *experiment) conditions() string {
	l := e.load
	var parts []string
	switch {
	case l.Kind == "keys":
		d := l.Distribution
		if l.Distribution == "zipf" {
			d = fmt.Sprintf("zipf(%g)", l.ZipfS)
		}
		parts = append(parts, fmt.Sprintf("%s, %s", plural(l.Keys, "key", "keys"), clean(d)))
	case l.Kind == "uncontended":
		parts = append(parts, "one key per client")
	case l.Kind != "":
		parts = append(parts, clean(l.Kind))
	}
	parts = append(parts, abilities(l)...)
	if len(e.counts) == 1 {
		parts = append(parts, plural(e.counts[0], "client", "clients"))
	}
	if l.Kind != scenario.Takeover {
		parts = append(parts, "hold "+l.Hold.String())
	}
	switch {
	case l.Kind == scenario.Takeover:
	case e.open():
		parts = append(parts, fmt.Sprintf("%s arrivals, %s/s", clean(l.Arrival), rate(l.Rate)))
	default:
		parts = append(parts, "think "+l.Think.String())
	}
	if l.MaxRate > 0 {
		parts = append(parts, fmt.Sprintf("at most %s acquires/s", rate(l.MaxRate)))
	}
	if e.ttl > 0 {
		parts = append(parts, "TTL "+e.ttl.String())
	}
	if d := e.id.delay; d > 0 {
		parts = append(parts, "lock delay "+d.String())
	}
	if l.AcquireLimit > 0 {
		parts = append(parts, "acquire limit "+l.AcquireLimit.D().String())
	}
	if l.WatchLease {
		parts = append(parts, "clients stop at the end of the lease")
	}
	if d := e.window(); d != "" {
		parts = append(parts, "window "+d)
	}
	return strings.Join(parts, " · ")
}

// abilities lists what is special about some kinds of load.
func abilities(l scenario.Load) []string {
	var parts []string
	if l.Readers > 0 {
		parts = append(parts, fmt.Sprintf("%g %% readers", 100*l.Readers))
	}
	if l.Depth > 0 {
		parts = append(parts, fmt.Sprintf("%d locks deep", l.Depth))
	}
	if l.Batch > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d keys per acquire", l.Batch, l.Keys))
	}
	if l.Connections > 0 {
		parts = append(parts, "pool of "+plural(l.Connections, "connection", "connections"))
	}
	return parts
}

// brief identifies an experiment in a few words.
func (e *experiment) brief() string {
	b := clean(e.load.Kind)
	if g := clean(e.group); g != "" && g != b && g != "contended" {
		b = g + ", " + b
	}
	return b + ", hold " + e.load.Hold.String()
}

// window is the length of the measured windows.
func (e *experiment) window() string {
	s := statOf(e.all(), func(r result) (float64, bool) { return float64(r.DurationNS), r.DurationNS > 0 })
	if s.n == 0 {
		return ""
	}
	return nanos(s.med)
}

// title is the experiment's group, or else its workload, and its faults.
func (e *experiment) title() string {
	t := clean(e.group)
	if t == "" {
		t = clean(e.load.Kind)
	}
	if len(e.faults) > 0 {
		f := clean(strings.Join(e.faults, " + "))
		if !strings.Contains(t, f) {
			t += " under " + f
		}
	}
	return t
}
