package claims

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/lockbench/lockbench/internal/scenario"
)

// compare decides by the ratio, or the difference, of two medians over repeats.
func (e evidence) compare(k Check) Part {
	least, _ := parseEffect(k.Least + k.Under) // validated
	p := Part{Verdict: Inconclusive, Scenarios: paths(e.of(k.Of), e.of(k.To))}
	of, why := e.sideOf(k, k.Of)
	var to sample
	if why == "" {
		p.Of = of.stat()
		to, why = e.sideOf(k, k.To)
	}
	if why == "" {
		p.To = to.stat()
		if of, to = of.inRunsOf(to), to.inRunsOf(of); k.counted == nil && min(of.size(), to.size()) < k.needs() {
			why = fmt.Sprintf("only %d of the %d repeats needed are of runs that measured both sides", min(of.size(), to.size()), k.needs())
		}
	}
	if why != "" {
		p.Reason = why
		return p
	}
	p.Of, p.To = of.stat(), to.stat()
	got := least.between(of, to)
	p.Effect = &got
	p.Verdict = least.verdict(got)
	if k.Under != "" {
		p.Verdict = opposite(p.Verdict)
	}
	p.Reason = fmt.Sprintf("%s against %s: %s", p.Of.text(), p.To.text(), least.text(got))
	if n := len(of.runs); n > 1 {
		p.Reason += fmt.Sprintf(" within each of %d runs", n)
	}
	if p.Verdict == Inconclusive {
		p.Reason += ", an effect within the spread of the repeats"
	}
	if math.IsInf(got.Median, 0) || math.IsInf(got.High, 0) {
		p.Effect = nil // not a number in JSON
	}
	return p
}

// sideOf is what one side of a comparison measured, or the count by hand.
func (e evidence) sideOf(k Check, s Set) (m sample, why string) {
	if k.counted == nil {
		return e.sample(k.Compare, s, k.needs())
	}
	if why = s.uncovered(e.of(s)); why != "" {
		return m, why
	}
	things := k.counted[s.Recipes[0]]
	if things == nil {
		return m, "the " + k.Compare + " of " + s.Recipes[0] + " were not counted"
	}
	return sample{k.Compare, map[int][]float64{0: {float64(len(things))}}}, ""
}

// needs is how many repeats the check needs.
func (k Check) needs() int {
	if k.Repeats > 0 {
		return k.Repeats
	}
	return minRepeats
}

// between is the effect of a over b: that of each run that has both, for a machine may
// be faster in one run than in another. Its ends are the least and the greatest that
// any two repeats of one run allow.
func (x effect) between(a, b sample) Interval {
	over := func(a, b float64) float64 {
		switch {
		case x.difference:
			return a - b
		case a == b:
			return 1 // also 0 of 0
		}
		return a / b
	}
	var medians, ends []float64
	for run := range a.inRunsOf(b).runs {
		of, to := newStat(a.metric, a.runs[run]), newStat(b.metric, b.runs[run])
		medians = append(medians, over(of.Median, to.Median))
		ends = append(ends, over(of.Min, to.Max), over(of.Max, to.Min))
	}
	return Interval{Median: newStat("", medians).Median, Low: slices.Min(ends), High: slices.Max(ends)}
}

// verdict is Confirmed if the effect is at least x and no two repeats contradict
// its direction, Refuted if no two repeats show an effect of x.
func (x effect) verdict(got Interval) string {
	none := 1.0
	if x.difference {
		none = 0
	}
	switch {
	case got.Median >= x.value && got.Low > none:
		return Confirmed
	case got.High < x.value:
		return Refuted
	}
	return Inconclusive
}

func opposite(verdict string) string {
	switch verdict {
	case Confirmed:
		return Refuted
	case Refuted:
		return Confirmed
	}
	return verdict
}

func (x effect) text(i Interval) string {
	if x.difference {
		return fmt.Sprintf("%+.2f (%+.2f to %+.2f)", i.Median, i.Low, i.High)
	}
	return fmt.Sprintf("%.2fx (%.2fx to %.2fx)", i.Median, i.Low, i.High)
}

// sample is a metric over the repeats of each run.
type sample struct {
	metric string
	runs   map[int][]float64
}

func (s sample) size() int {
	n := 0
	for _, values := range s.runs {
		n += len(values)
	}
	return n
}

// inRunsOf is the part of s from runs that o has too.
func (s sample) inRunsOf(o sample) sample {
	kept := sample{s.metric, map[int][]float64{}}
	for run, values := range s.runs {
		if len(o.runs[run]) > 0 {
			kept.runs[run] = values
		}
	}
	return kept
}

func (s sample) stat() *Stat {
	st := newStat(s.metric, slices.Concat(slices.Collect(maps.Values(s.runs))...))
	return &st
}

// sample measures a metric over the repeats of a set; why says what it lacks. The
// value of a repeat is the mean over its scenarios, and a repeat counts only if all of
// them have one.
func (e evidence) sample(metric string, s Set, needs int) (m sample, why string) {
	list := e.of(s)
	if why = s.uncovered(list); why != "" {
		return m, why
	}
	type unit struct {
		group, recipe string
		clients       int
	}
	units := map[unit]bool{}
	sums, counts := map[repeat]float64{}, map[repeat]int{}
	flawed := ""
	for _, r := range list {
		units[unit{r.Group, r.Recipe, r.Clients}] = true
		flaw := r.flaw()
		v, known := readMetric(metric, r.Result)
		if flaw == "" && !known {
			flaw = fmt.Sprintf("%s has no %s", r.Name, metric)
		}
		if flaw != "" {
			flawed = flaw
			continue
		}
		sums[r.repeat()] += v
		counts[r.repeat()]++
	}
	m = sample{metric, map[int][]float64{}}
	for r, n := range counts {
		if n == len(units) {
			m.runs[r.run] = append(m.runs[r.run], sums[r]/float64(n))
		}
	}
	if m.size() < needs {
		return m, tooFew(m.size(), needs, s, flawed)
	}
	return m, ""
}

func tooFew(n, needs int, s Set, flawed string) string {
	text := fmt.Sprintf("%s measured %d of the %d repeats needed", s.words(), n, needs)
	if flawed != "" {
		text += " (" + flawed + ")"
	}
	return text
}

func newStat(metric string, values []float64) Stat {
	slices.Sort(values)
	n := len(values)
	return Stat{Metric: metric, Median: (values[(n-1)/2] + values[n/2]) / 2, Min: values[0], Max: values[n-1], Repeats: n}
}

// text is the median with the spread.
func (s Stat) text() string {
	if s.Min == s.Max {
		return metricText(s.Metric, s.Median)
	}
	return fmt.Sprintf("%s (%s to %s)", metricText(s.Metric, s.Median), metricText(s.Metric, s.Min), metricText(s.Metric, s.Max))
}

func isMetric(name string) bool {
	_, err := scenario.ParseMetric(name)
	return err == nil
}

func readMetric(name string, r scenario.Result) (value float64, known bool) {
	m, err := scenario.ParseMetric(name)
	if err != nil {
		return 0, false
	}
	return m.Read(r)
}

// metricText writes a value with its unit; what is no metric was counted by hand.
func metricText(name string, v float64) string {
	m, _ := scenario.ParseMetric(name)
	return m.Text(v)
}
