package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// build makes a run's content.
func build(r run) *content {
	b := newBuilder(r)
	d := r.doc
	es := experiments(loads(d.Scenarios))
	c := &content{Title: "lockbench " + clean(d.Suite), Facts: facts(d)}
	if d.Suite == "" {
		c.Title = "lockbench"
	}
	c.Subtitle = subtitle(d)
	add := func(s section) {
		if len(s.Tables) > 0 {
			c.Sections = append(c.Sections, s)
		}
	}
	byFault := groupByFault(d)
	add(b.matrix(byFault))
	add(b.claims())
	add(b.servers())
	add(b.properties())
	add(b.uncontended(es))
	add(b.contended(es))
	add(b.tries(es))
	add(b.cost(es))
	add(b.openLoop(es))
	add(b.takeover(es))
	add(b.faults(es))
	add(b.safety(es))
	add(b.thresholds(es))
	add(b.controls(es))
	c.Headlines = headlines(byFault)
	c.Answers = answers(r, es)
	b.tidy(c.Sections)
	for _, w := range d.Warnings {
		b.note("Warning: " + clean(w))
	}
	c.Notes = b.notes
	c.Surprises = surprises(d)
	c.Closing, c.ClosingOK = closing(d, len(d.Scenarios) > 0)
	c.ClosingClass = closingClass(c)
	return c
}

func subtitle(d scenario.Document) string {
	parts := []string{plural(len(d.Scenarios), "scenario", "scenarios"), fmt.Sprintf("seed %d", d.Seed)}
	if !d.Started.IsZero() {
		parts = append(parts, d.Started.UTC().Format("2006-01-02 15:04 UTC"))
		if d.Finished.After(d.Started) {
			parts = append(parts, "took "+d.Finished.Sub(d.Started).Round(time.Second).String())
		}
	}
	if d.Interrupted {
		parts = append(parts, "INTERRUPTED")
	}
	return strings.Join(parts, " · ")
}

func facts(d scenario.Document) []fact {
	h := d.Host
	var host []string
	if h.CPUs > 0 {
		host = append(host, strings.TrimSpace(fmt.Sprintf("%d × %s", h.CPUs, clean(h.CPUModel))))
	}
	if h.MemoryB > 0 {
		host = append(host, size(h.MemoryB))
	}
	for _, s := range []string{h.OS + "/" + h.Arch, h.Kernel, h.GoVersion} {
		if s = clean(s); s != "" && s != "/" {
			host = append(host, s)
		}
	}
	fs := []fact{{"host", strings.Join(host, " · ")}, {"lockbench", clean(d.Lockbench)}}
	if d.DiskBytes > 0 {
		fs = append(fs, fact{"disk", size(d.DiskBytes) + " in the run's folder"})
	}
	return slices.DeleteFunc(fs, func(f fact) bool { return f.Value == "" })
}

// servers lists product, version and durability of each server. A missing backend
// keeps its row.
func (b *builder) servers() section {
	t := table{Head: "backend", Cols: []column{{Name: "server", Left: true}, {Name: "topology", Left: true}, {Name: "durability", Left: true}}}
	seen := map[string]bool{}
	present := map[string]bool{}
	add := func(backend, topology, server, durability string) {
		if server = strings.TrimSpace(server); server == "" {
			return
		}
		key := backend + "\x00" + topology + "\x00" + server + "\x00" + durability
		if seen[key] {
			return
		}
		seen[key], present[backend] = true, true
		t.Rows = append(t.Rows, row{Head: clean(backend), Cells: []cell{{Text: server}, {Text: or(clean(topology), none)}, {Text: or(clean(durability), none)}}})
	}
	for _, r := range b.run.doc.Scenarios {
		// An interrupted scenario had a server.
		if r.Status == scenario.StatusDone || r.Status == scenario.StatusInterrupted {
			add(r.Backend, r.Topology, clean(r.Server)+" "+clean(r.Version), r.Durability)
		}
	}
	for _, m := range b.missing() {
		for _, c := range b.idle(m) {
			add(c.Backend, c.Topology, clean(c.Product)+" "+clean(c.Version), c.Durability)
		}
		if !present[m.name] {
			t.Rows = append(t.Rows, row{Head: clean(m.name), Span: m.text, Class: warn})
		}
	}
	return section{Title: "SERVERS", Tables: nonEmpty(t)}
}

// idle lists the servers of a backend that were running when the user interrupted
// the run, before any of their scenarios had a result.
func (b *builder) idle(m absentBackend) []scenario.ClusterInfo {
	if b.run.env == nil || m.status != scenario.StatusInterrupted {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(b.run.env.Clusters), func(c scenario.ClusterInfo) bool { return c.Backend != m.name })
}

type absentBackend struct {
	name, text string
	status     scenario.Status
}

// missing lists the backends without any result, in the suite's order.
func (b *builder) missing() []absentBackend {
	reason := map[string]string{}
	status := map[string]scenario.Status{}
	var names []string
	has := map[string]bool{}
	for _, r := range b.run.doc.Scenarios {
		has[r.Backend] = has[r.Backend] || r.Status == scenario.StatusDone
		if r.Status != scenario.StatusDone && reason[r.Backend] == "" {
			reason[r.Backend], status[r.Backend] = absence(r), r.Status
			names = append(names, r.Backend)
		}
	}
	if b.run.env != nil {
		var more []string
		for name, why := range b.run.env.Missing {
			if reason[name] == "" && !has[name] {
				reason[name] = "missing: " + clean(why)
				more = append(more, name)
			}
		}
		slices.Sort(more)
		names = append(names, more...)
	}
	var out []absentBackend
	for _, n := range names {
		if !has[n] {
			out = append(out, absentBackend{n, reason[n], status[n]})
		}
	}
	return out
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func nonEmpty(ts ...table) []table {
	return slices.DeleteFunc(ts, func(t table) bool { return len(t.Rows) == 0 })
}

// surprises lists the expectations that were not met or not decided.
func surprises(d scenario.Document) []surprise {
	var out []surprise
	type cause struct{ kind, recipe, reason string }
	at, like := map[cause]int{}, map[cause]int{} // index of a cause in out, and its further occurrences
	for _, r := range d.Scenarios {
		name := or(clean(r.Name), clean(r.Recipe))
		switch o := outcomeOf(r); o {
		case outcomeMissing, outcomeFailed, outcomeInterrupted:
			reason := or(clean(r.Reason), noReason) + soFar(r)
			k := cause{string(o), r.Recipe, reason}
			i, ok := at[k]
			if !ok {
				at[k] = len(out)
				out = append(out, surprise{Scenario: name, Kind: string(o), Text: reason})
				continue
			}
			like[k]++
			out[i].Text = fmt.Sprintf("%s (and %s of %s)", reason, plural(like[k], "more scenario", "more scenarios"), clean(r.Recipe))
		case outcomeWrong, outcomeInconclusive, outcomeKnown:
			texts := r.Surprises
			if len(texts) == 0 {
				texts = []string{"no reason recorded; see its verdict"}
			}
			if o == outcomeKnown {
				texts = []string{r.KnownFailure + ": " + strings.Join(texts, "; ")}
			}
			for _, s := range texts {
				out = append(out, surprise{Scenario: name, Kind: string(o), Text: reasonOf(o, s)})
			}
		}
	}
	return out
}

// reasonOf is a surprise without the outcome that it begins with.
func reasonOf(o outcome, s string) string { return strings.TrimPrefix(clean(s), string(o)+": ") }

// outcome compares a scenario's result with its expectations.
type outcome string

const (
	outcomeOK           outcome = "passed"
	outcomeNone         outcome = "without expectation"
	outcomeKnown        outcome = "known to fail"
	outcomeWrong        outcome = "not as expected"
	outcomeInconclusive outcome = "inconclusive"
	outcomeMissing      outcome = "missing"
	outcomeFailed       outcome = "failed"
	outcomeInterrupted  outcome = "interrupted"
)

// outcomeOf never treats a missing answer as success: a null where an answer was
// expected is inconclusive, an unknown status is a failure.
func outcomeOf(r result) outcome {
	switch r.Status {
	case scenario.StatusMissing:
		return outcomeMissing
	case scenario.StatusInterrupted:
		return outcomeInterrupted
	case scenario.StatusDone:
	default:
		return outcomeFailed
	}
	e := r.Expect
	expects := e.Verdict != "" || e.Promise != "" || e.Liveness != "" || len(e.Thresholds) > 0 || measuresProperties(r)
	switch {
	case r.KnownFailure != "":
		return outcomeKnown
	case r.AsExpected != nil && !*r.AsExpected:
		return outcomeWrong
	case r.AsExpected == nil && (expects || len(r.Surprises) > 0):
		return outcomeInconclusive
	case !expects:
		return outcomeNone
	}
	return outcomeOK
}

// closingClass is the colour of the closing line: not that of success where a
// headline has found a lock unsafe.
func closingClass(c *content) class {
	switch {
	case !c.ClosingOK:
		return bad
	case slices.ContainsFunc(c.Headlines, func(h headline) bool { return h.Class != good }):
		return plain
	}
	return good
}

func closing(d scenario.Document, any bool) (string, bool) {
	if !any {
		return "No scenario ran.", false
	}
	n := map[outcome]int{}
	for _, r := range d.Scenarios {
		n[outcomeOf(r)]++
	}
	var parts []string
	for _, o := range []outcome{outcomeOK, outcomeKnown, outcomeWrong, outcomeInconclusive, outcomeMissing, outcomeFailed, outcomeInterrupted, outcomeNone} {
		if n[o] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[o], o))
		}
	}
	good := n[outcomeOK] + n[outcomeNone] + n[outcomeKnown]
	return plural(len(d.Scenarios), "scenario", "scenarios") + ", " + strings.Join(parts, ", ") + documented(n, len(d.Scenarios)) + ".", good == len(d.Scenarios)
}

// documented explains what passed means, if all scenarios passed.
func documented(n map[outcome]int, all int) string {
	if n[outcomeOK] < all {
		return ""
	}
	return ": each result is as documented for its recipe"
}
