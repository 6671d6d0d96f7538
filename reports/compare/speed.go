package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Speed is one metric of a scenario in both runs.
type Speed struct {
	Scenario string  `json:"scenario"`
	Metric   string  `json:"metric"`
	Base     float64 `json:"base"` // medians
	New      float64 `json:"new"`
	Change   float64 `json:"change"` // of the median: 0.1 is 10 % more
	P        float64 `json:"p"`
	// Spread is the range of the middle half of the repeats, as a share of the
	// median, in the run where it is larger.
	Spread  float64 `json:"spread"`
	BaseN   int     `json:"base_n"` // repeats
	NewN    int     `json:"new_n"`
	Changed bool    `json:"changed"`
	// Findable is the smallest change, in either direction, that these repeats could
	// have shown, where none was found. It is 0 if they could not have shown one of
	// 100 %.
	Findable float64 `json:"findable,omitempty"`
	// Refused is why the two cannot be compared.
	Refused string `json:"refused,omitempty"`
	quiet   bool   // the repeats on a busy machine were left out

	base, new []float64 // the repeats that were tested
}

// usual are the metrics of every scenario without faults. Few metrics leave each
// test more power.
func usual() []string {
	return []string{"throughput", "acquire.p50", "acquire.p99", "requests_per_acquire"}
}

// fewForP99 is the number of acquires below which a 99th percentile is the largest
// value.
const fewForP99 = 100

// speed tests every metric of every pair, and decides which changes count.
func (c *Comparison) speed(pairs []pair, o Options) {
	refused := ""
	if len(c.Differences) > 0 && !o.Anyway {
		refused = "the environments differ"
	}
	for _, p := range pairs {
		names := []string{}
		if r := firstDone(p.base); r != nil && len(r.Faults) == 0 {
			names = usual()
		}
		for _, rule := range o.Rules {
			if !slices.Contains(names, rule.Metric) {
				names = append(names, rule.Metric)
			}
		}
		why := refused
		if why == "" {
			why = p.settings()
		}
		for _, name := range names {
			if s, measured := p.test(name, o, why); measured {
				c.Speed = append(c.Speed, s)
			}
		}
	}
	if o.Anyway {
		c.Busy = busy(pairs)
	}
	// Holm: the smallest p of m must be below alpha/m, the next below
	// alpha/(m-1), and so on to the first that is not.
	var tested []*Speed
	for i := range c.Speed {
		if s := &c.Speed[i]; s.Refused == "" {
			tested = append(tested, s)
		}
	}
	c.Tests = len(tested)
	slices.SortStableFunc(tested, func(a, b *Speed) int { return cmp.Compare(a.P, b.P) })
	holds := true
	for i, s := range tested {
		limit := o.Alpha / float64(len(tested)-i)
		holds = holds && s.P <= limit
		if s.Changed = holds && math.Abs(s.Change) >= o.MinChange; s.Changed && math.Abs(s.Change) < s.Spread {
			s.Changed, s.Refused = false, fmt.Sprintf("the repeats of a run differ by %.0f %%, more than the two runs do: was the machine busy?", 100*s.Spread)
		}
		least := o.Alpha / float64(len(tested))
		if leastP(s.BaseN, s.NewN) > least {
			s.Changed, s.Refused = false, tooFew(s.BaseN, s.NewN, least, len(tested))
			if s.quiet {
				s.Refused += "; those on a busy machine do not count"
			}
		}
		if !s.Changed && s.Refused == "" {
			s.Findable = s.findable(least, o.MinChange)
		}
	}
}

// findable supposes that the runs differ by a factor alone, and searches for the
// smallest factor whose p is at most limit, which suffices at any place in Holm's
// order.
func (s Speed) findable(limit, least float64) float64 {
	if s.Base == 0 || s.New == 0 {
		return 0
	}
	p := func(factor float64) float64 {
		scaled := make([]float64, len(s.new))
		for i, v := range s.new {
			scaled[i] = v * factor * s.Base / s.New
		}
		return pValue(s.base, scaled)
	}
	from := max(1, int(math.Ceil(100*max(least, s.Spread))))
	more := sort.Search(101-min(from, 101), func(i int) bool {
		factor := 1 + float64(from+i)/100
		return p(factor) <= limit && p(1/factor) <= limit
	})
	if from+more > 100 {
		return 0
	}
	return float64(from+more) / 100
}

func (s Speed) findableText() string {
	if s.Findable == 0 {
		return ">100%"
	}
	return fmt.Sprintf("%.0f%%", 100*s.Findable)
}

// pValue is that of a Mann-Whitney U test.
func pValue(a, b []float64) float64 {
	t := &benchmath.Thresholds{} // they decide nothing about P
	return benchmath.AssumeNothing.Compare(benchmath.NewSample(a, t), benchmath.NewSample(b, t)).P
}

// test compares one metric; measured is false if a run did not measure it.
func (p pair) test(name string, o Options, refused string) (s Speed, measured bool) {
	m, err := scenario.ParseMetric(name)
	if err != nil {
		return s, false // the rules were checked
	}
	base, new := values(p.base, m, name), values(p.new, m, name)
	if len(base) == 0 || len(new) == 0 {
		return s, false
	}
	quiet := false
	if quietBase, quietNew := values(idle(p.base), m, name), values(idle(p.new), m, name); !o.Anyway && leastP(len(base), len(new)) <= o.Alpha {
		if leastP(len(quietBase), len(quietNew)) <= o.Alpha {
			quiet = len(quietBase)+len(quietNew) < len(base)+len(new)
			base, new = quietBase, quietNew
		} else if refused == "" {
			refused = busyText(len(base), len(quietBase), len(new), len(quietNew))
		}
	}
	slices.Sort(base)
	slices.Sort(new)
	s = Speed{
		Scenario: p.name, Metric: name, BaseN: len(base), NewN: len(new), P: pValue(base, new),
		Base: median(base), New: median(new), Refused: refused, quiet: quiet,
		Spread: max(spread(base), spread(new)), base: base, new: new,
	}
	switch {
	case s.Base != 0:
		s.Change = s.New/s.Base - 1
	case s.New != 0 && refused == "":
		s.Refused = "it was 0 in BASE, so there is no relative change"
	}
	if s.Refused == "" && leastP(len(base), len(new)) > o.Alpha {
		s.Refused = tooFew(len(base), len(new), o.Alpha, 1)
	}
	return s, true
}

// busy counts the repeats during which the machine was busy; "" if there are none.
func busy(pairs []pair) string {
	var base, new, quietBase, quietNew int
	for _, p := range pairs {
		base, new = base+len(p.base), new+len(p.new)
		quietBase, quietNew = quietBase+len(idle(p.base)), quietNew+len(idle(p.new))
	}
	if base == quietBase && new == quietNew {
		return ""
	}
	return busyText(base, quietBase, new, quietNew)
}

func busyText(base, quietBase, new, quietNew int) string {
	return fmt.Sprintf("the machine was busy during %d of %d repeats in BASE and %d of %d in NEW", base-quietBase, base, new-quietNew, new)
}

// idle are the repeats whose figures are the lock's, and not those of a busy machine.
func idle(rs []scenario.Result) []scenario.Result {
	busy := func(w string) bool {
		return slices.ContainsFunc(scenario.BusyWarnings(), func(begin string) bool { return strings.HasPrefix(w, begin) })
	}
	list := make([]scenario.Result, 0, len(rs)) // a result is large
	for _, r := range rs {
		if !slices.ContainsFunc(r.Warnings, busy) {
			list = append(list, r)
		}
	}
	return list
}

func values(rs []scenario.Result, m scenario.Metric, name string) []float64 {
	var list []float64
	for _, r := range rs {
		if r.Status != scenario.StatusDone || strings.HasSuffix(name, ".p99") && r.Acquired < fewForP99 {
			continue
		}
		if v, ok := m.Read(r); ok {
			list = append(list, v)
		}
	}
	return list
}

func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// spread is the range of the middle half, as a share of the median.
func spread(sorted []float64) float64 {
	m := median(sorted)
	if m == 0 {
		return 0
	}
	n := len(sorted)
	return (sorted[n-1-n/4] - sorted[n/4]) / m
}

// leastP is the smallest p that a test of so many repeats can have: all of one run
// below all of the other.
func leastP(a, b int) float64 {
	lgamma := func(n int) float64 { v, _ := math.Lgamma(float64(n + 1)); return v }
	return math.Min(1, 2*math.Exp(lgamma(a)+lgamma(b)-lgamma(a+b)))
}

func tooFew(a, b int, limit float64, tests int) string {
	need := 1
	for leastP(need, need) > limit {
		need++
	}
	if tests == 1 {
		return fmt.Sprintf("too few repeats, %d and %d: at least %d are needed", a, b, need)
	}
	return fmt.Sprintf("too few repeats for %d tests at once, %d and %d: %d are needed", tests, a, b, need)
}

// Rule is a change that fails a comparison: "acquire.p99 > +20%".
type Rule struct {
	Metric string
	More   bool // > or <
	Change float64
	text   string
}

// ParseRule reads a metric, < or >, and a change in percent.
func ParseRule(text string) (Rule, error) {
	wrong := errors.New(`write a metric, > or <, and a change: "acquire.p99 > +20%" or "throughput < -10%"`)
	i := strings.IndexAny(text, "<>")
	if i < 0 {
		return Rule{}, fmt.Errorf("%q: %w", text, wrong)
	}
	r := Rule{Metric: strings.TrimSpace(text[:i]), More: text[i] == '>', text: text}
	if _, err := scenario.ParseMetric(r.Metric); err != nil {
		return Rule{}, fmt.Errorf("%q: %w", text, err)
	}
	number, percent := strings.CutSuffix(strings.TrimSpace(text[i+1:]), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !percent || err != nil || r.More != (v > 0) || math.IsInf(v, 0) || v == 0 {
		return Rule{}, fmt.Errorf("%q: %w", text, wrong)
	}
	r.Change = v / 100
	return r, nil
}

// Gate is a rule that a scenario breaks, or that it leaves open.
type Gate struct {
	Rule     string `json:"rule"`
	Scenario string `json:"scenario,omitempty"`
	// Open is why it is not known whether the rule is broken.
	Open string `json:"open,omitempty"`
}

func (c *Comparison) judge(rules []Rule) {
	for _, rule := range rules {
		compared := 0
		for _, s := range c.Speed {
			switch {
			case s.Metric != rule.Metric:
				continue
			case s.Refused != "":
				c.Failed = append(c.Failed, Gate{rule.text, s.Scenario, s.Refused})
			case s.Changed && (rule.More && s.Change > rule.Change || !rule.More && s.Change < rule.Change):
				c.Failed = append(c.Failed, Gate{Rule: rule.text, Scenario: s.Scenario})
			case !s.Changed && s.Base != 0 && s.New != 0 && (s.Findable == 0 || s.Findable > math.Abs(rule.Change)):
				c.Weak = append(c.Weak, Gate{rule.text, s.Scenario, "the smallest change that could have been found: " + s.findableText()})
			}
			compared++
		}
		if compared == 0 {
			c.Failed = append(c.Failed, Gate{Rule: rule.text, Open: "no scenario of both runs measured " + rule.Metric})
		}
	}
}
