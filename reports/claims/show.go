package claims

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

// shown is something that a scenario shows or does not.
type shown struct {
	text string
	// known is false where the result does not decide; it is skipped where it has
	// no part in the question.
	in func(scenario.Result) (shows, known, skipped bool)
	// one counterexample refutes it: that a lock is always safe, for example.
	universal bool
	// size is the metric that says how much of it there was; "": none.
	size string
}

// parseShown reads "verdict = unsafe", a threshold, or "property exclusive".
func parseShown(s string) (shown, error) {
	if name, ok := strings.CutPrefix(s, "property "); ok {
		return shown{text: "the property " + name, in: hasProperty(name), universal: true}, nil
	}
	if name, want, ok := strings.Cut(s, " = "); ok {
		return answerShown(name, want)
	}
	t, err := scenario.ParseThreshold(s)
	return shown{text: s, size: t.Metric, in: func(r scenario.Result) (bool, bool, bool) {
		met, known := t.Check(r)
		return met, known, false
	}}, err
}

func answerShown(name, want string) (shown, error) {
	for _, a := range scenario.Answers() {
		if a.Name != name || want != a.Bad && want != a.Good {
			continue
		}
		s := shown{text: name + " " + want, universal: want == a.Good, in: func(r scenario.Result) (bool, bool, bool) {
			got := a.Of(r.Safety)
			return got == want, got == a.Bad || got == a.Good, false
		}}
		if want == scenario.Unsafe {
			s.size = "overlap"
		}
		return s, nil
	}
	return shown{}, fmt.Errorf("%s = %s is no answer; write verdict = safe|unsafe, guarantee = kept|broken or liveness = live|stuck", name, want)
}

// hasProperty skips recipes that do not guarantee the property.
func hasProperty(name string) func(scenario.Result) (bool, bool, bool) {
	return func(r scenario.Result) (shows, known, skipped bool) {
		i := slices.IndexFunc(r.Properties, func(p scenario.Property) bool { return p.Property == name })
		if i < 0 {
			return false, false, false
		}
		p := r.Properties[i]
		if p.Promised != scenario.Yes {
			return false, true, true
		}
		return p.Measured == scenario.Yes, p.Measured == scenario.Yes || p.Measured == scenario.No, false
	}
}

// tally is how the results of a set answer.
type tally struct {
	yes, no   []measured
	undecided string // why one result does not count
	least     int    // repeats that count, of the recipe and group with the fewest
}

func (e evidence) tally(q shown, list []measured) tally {
	var t tally
	units := map[string]int{}
	for _, m := range list {
		shows, known, skipped := q.in(m.Result)
		unit := fmt.Sprintf("%s %s %d", m.Group, m.Recipe, m.Clients)
		flaw := m.flaw()
		if flaw == "" && skipped {
			continue
		}
		units[unit] += 0
		switch {
		case flaw != "":
			t.undecided = flaw
		case !known:
			t.undecided = fmt.Sprintf("%s leaves %s unknown", m.Name, q.text)
		case shows:
			t.yes = append(t.yes, m)
			units[unit]++
		default:
			t.no = append(t.no, m)
			units[unit]++
		}
	}
	first := true
	for _, n := range units {
		if first || n < t.least {
			t.least, first = n, false
		}
	}
	return t
}

// show decides whether all repeats show something, and the control does not.
func (e evidence) show(k Check) Part {
	q, _ := parseShown(k.Show) // validated
	list := e.of(k.Of)
	t := e.tally(q, list)
	p := Part{Verdict: Inconclusive, Scenarios: paths(t.yes)}
	total := len(t.yes) + len(t.no)
	seen := fmt.Sprintf("%s in %d of %d", q.text, len(t.yes), total)
	if len(t.yes) == 0 {
		p.Scenarios = paths(t.no)
	}
	if q.size != "" && total > 0 {
		p.Of = sizes(q.size, append(slices.Clone(t.yes), t.no...))
	}
	if p.Of != nil {
		seen += fmt.Sprintf("; %s %s", q.size, p.Of.text())
	}
	if q.universal && len(t.no) > 0 {
		p.Verdict, p.Scenarios = Refuted, paths(t.no)
		p.Reason = fmt.Sprintf("%s; not in %s", seen, names(t.no))
		return p
	}
	if why := k.Of.uncovered(list); why != "" {
		p.Reason = why
		return p
	}
	if t.least < k.needs() {
		p.Reason = seen + "; " + tooFew(t.least, k.needs(), k.Of, t.undecided)
		return p
	}
	p.Reason = seen
	switch {
	case len(t.no) == 0:
		p.Verdict = Confirmed
	case len(t.yes) == 0:
		p.Verdict = Refuted
	default:
		p.Reason += ": the repeats disagree"
	}
	if p.Verdict == Confirmed && len(k.Control.In) > 0 {
		e.control(k, q, &p)
	}
	return p
}

// control takes a confirmation back if the control shows the same, or is missing.
func (e evidence) control(k Check, q shown, p *Part) {
	list := e.of(k.Control)
	t := e.tally(q, list)
	p.Scenarios = append(p.Scenarios, paths(list)...)
	switch why := k.Control.uncovered(list); {
	case why != "":
		p.Verdict, p.Reason = Inconclusive, p.Reason+"; control: "+why
	case len(t.yes) > 0:
		p.Verdict, p.Reason = Inconclusive, p.Reason+"; the control shows it too: "+names(t.yes)
	case t.least < k.needs():
		p.Verdict, p.Reason = Inconclusive, p.Reason+"; control: "+tooFew(t.least, k.needs(), k.Control, t.undecided)
	default:
		p.Reason += fmt.Sprintf("; in none of the control's %d", len(t.no))
	}
}

// sizes is a metric over single scenarios, or nil if none has it.
func sizes(metric string, list []measured) *Stat {
	var values []float64
	for _, m := range list {
		if v, ok := readMetric(metric, m.Result); ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return nil
	}
	s := newStat(metric, values)
	return &s
}

func names(list []measured) string {
	const most = 3
	var out []string
	for i, m := range list {
		if i == most {
			out = append(out, fmt.Sprintf("%d more", len(list)-most))
			break
		}
		out = append(out, m.Name)
	}
	return strings.Join(out, ", ")
}
