package claims

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

// The verdicts on a claim.
const (
	Confirmed    = "confirmed"
	Refuted      = "refuted"
	Inconclusive = "inconclusive"
)

// minRepeats is how many repeats a check needs if it names no number.
const minRepeats = 3

// Run is the document of a run. Prefix is put before the paths of its scenarios;
// it is empty for a report inside the run's own folder.
type Run struct {
	Prefix   string
	Document scenario.Document
}

// Decision is the verdict on a claim.
type Decision struct {
	ID         string   `json:"id"`
	Claim      string   `json:"claim"`
	Documents  []string `json:"documents"`
	Experiment string   `json:"experiment"`
	Verdict    string   `json:"verdict"`
	Reason     string   `json:"reason"`
	Parts      []Part   `json:"parts"`
	Tables     []Table  `json:"tables,omitempty"` // a rank, curves
	Limits     string   `json:"limits,omitempty"`
}

// Part is the verdict on one check of a rule.
type Part struct {
	Says    string `json:"says,omitempty"`
	Rule    string `json:"rule"`
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"` // with the effect and its spread
	// Of and To are the measured sides; null: the check is not about a number, or
	// nothing was measured.
	Of *Stat `json:"of,omitempty"`
	To *Stat `json:"to,omitempty"`
	// Effect is the ratio or difference of the medians, with the least and the
	// greatest that the repeats allow.
	Effect    *Interval `json:"effect,omitempty"`
	Scenarios []string  `json:"scenarios"` // folders of the scenarios that show it
}

// Stat is a metric over repeats.
type Stat struct {
	Metric  string  `json:"metric"`
	Median  float64 `json:"median"`
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	Repeats int     `json:"repeats"`
}

// Interval is an effect with its spread.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Decide gives the verdict on each claim.
func Decide(claims []Claim, runs []Run) []Decision {
	e := evidence{}
	for i, run := range runs {
		for _, r := range run.Document.Scenarios {
			e.results = append(e.results, measured{Result: r, run: i, path: path.Join(run.Prefix, scenario.DirScenarios, r.Name)})
		}
	}
	list := make([]Decision, 0, len(claims))
	for _, c := range claims {
		list = append(list, e.decide(c))
	}
	return list
}

// Counts is how many claims have each verdict, in a sentence.
func Counts(list []Decision) string {
	n := map[string]int{}
	for _, d := range list {
		n[d.Verdict]++
	}
	what := "claims"
	if len(list) == 1 {
		what = "claim"
	}
	return fmt.Sprintf("%d %s: %d confirmed, %d refuted, %d inconclusive", len(list), what, n[Confirmed], n[Refuted], n[Inconclusive])
}

type evidence struct{ results []measured }

// measured is one result, and where it is.
type measured struct {
	scenario.Result
	run  int
	path string
}

// repeat identifies one repeat of an experiment: a run, and its number in it.
type repeat struct{ run, number int }

func (m measured) repeat() repeat { return repeat{m.run, m.Repeat} }

func (e evidence) decide(c Claim) Decision {
	d := Decision{ID: c.ID, Claim: c.Claim, Documents: c.Documents, Experiment: c.Experiment, Limits: c.Limits}
	for _, k := range c.Rule {
		p := e.check(k)
		p.Says, p.Rule = k.Says, k.words()
		d.Parts = append(d.Parts, p)
	}
	d.Verdict, d.Reason = overall(d.Parts)
	if c.Rank != nil {
		d.Tables = append(d.Tables, e.rank(*c.Rank, d.Parts))
	}
	for _, v := range c.Curves {
		d.Tables = append(d.Tables, e.curve(v))
	}
	return d
}

// overall is the verdict on a claim: that of its worst part.
func overall(parts []Part) (verdict, reason string) {
	for _, v := range []string{Refuted, Inconclusive, Confirmed} {
		i := slices.IndexFunc(parts, func(p Part) bool { return p.Verdict == v })
		if i < 0 {
			continue
		}
		if len(parts) == 1 {
			return v, parts[i].Reason
		}
		counts := []string{}
		for _, w := range []string{Confirmed, Refuted, Inconclusive} {
			n := 0
			for _, p := range parts {
				if p.Verdict == w {
					n++
				}
			}
			if n > 0 {
				counts = append(counts, fmt.Sprintf("%d %s", n, w))
			}
		}
		reason = fmt.Sprintf("of %d parts %s", len(parts), strings.Join(counts, ", "))
		if v != Confirmed {
			reason += ": " + cmp.Or(parts[i].Says, parts[i].Rule) + ": " + parts[i].Reason
		}
		return v, reason
	}
	return Inconclusive, "the claim has no rule"
}

func (e evidence) check(k Check) Part {
	switch {
	case k.Unmeasured != "":
		return Part{Verdict: Inconclusive, Reason: "not measured: " + k.Unmeasured, Scenarios: []string{}}
	case k.Show != "":
		return e.show(k)
	}
	return e.compare(k)
}

// of returns the results of a set.
func (e evidence) of(s Set) []measured {
	var list []measured
	for _, m := range e.results {
		if s.selects(m.Group, m.Recipe, m.Clients) {
			list = append(list, m)
		}
	}
	return list
}

// flaw is why a result cannot decide anything; "" if it can.
func (m measured) flaw() string {
	if m.Status != scenario.StatusDone {
		return fmt.Sprintf("%s is %s: %s", m.Name, m.Status, m.Reason)
	}
	for _, f := range m.Faults {
		if f.Status != "effective" {
			return fmt.Sprintf("%s: the fault %s was %s: %s", m.Name, f.Kind, f.Status, f.Reason)
		}
	}
	if len(m.Safety.Damage) > 0 {
		return fmt.Sprintf("%s: its history is damaged", m.Name)
	}
	return ""
}

// uncovered is a group of the set without any result, or a recipe; "" if there is
// none. A group and its variants on other topologies ("holder-pause",
// "holder-pause-quorum") are one.
func (s Set) uncovered(list []measured) string {
	bases := map[string]bool{}
	recipes := map[string]bool{}
	for _, m := range list {
		bases[base(m.Group)], recipes[m.Recipe] = true, true
	}
	for _, g := range s.In {
		if !bases[base(g)] {
			return "no scenario was run of " + Set{In: []string{g}, Recipes: s.Recipes, Clients: s.Clients}.words()
		}
	}
	for _, r := range s.Recipes {
		if !recipes[r] {
			return "no scenario was run of " + Set{In: s.In, Recipes: []string{r}, Clients: s.Clients}.words()
		}
	}
	return ""
}

func base(group string) string { return strings.TrimSuffix(group, "-quorum") }

func paths(lists ...[]measured) []string {
	out := []string{}
	for _, list := range lists {
		for _, m := range list {
			if !slices.Contains(out, m.path) {
				out = append(out, m.path)
			}
		}
	}
	return out
}
