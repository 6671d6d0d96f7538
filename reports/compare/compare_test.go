package compare_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/reports/compare"
)

// made is a run of some locks, each repeated, whose figures vary by noise around
// the same values; slower multiplies the waits of the first lock.
func made(rng *rand.Rand, locks, repeats int, noise, slower float64) scenario.Document {
	d := scenario.Document{Suite: "made", Host: scenario.Host{CPUs: 2}}
	vary := func(v float64) float64 { return v * math.Exp(noise*rng.NormFloat64()) }
	for repeat := 1; repeat <= repeats; repeat++ {
		for lock := range locks {
			factor := 1.0
			if lock == 0 {
				factor = slower
			}
			throughput, requests := vary(1000/factor), 2.0
			d.Scenarios = append(d.Scenarios, scenario.Result{
				Name: fmt.Sprintf("contended-lock%d-8c-r%d", lock, repeat), Repeat: repeat, Status: scenario.StatusDone,
				Workload: scenario.Load{Kind: scenario.HotKey}, Clients: 8, Acquired: 5000, Throughput: &throughput, RequestsPerAcquire: &requests,
				Acquire: &scenario.Latency{Count: 5000, P50: int64(vary(1e6 * factor)), P99: int64(vary(2e7 * factor))},
				Safety:  scenario.Safety{Verdict: scenario.Safe, Promise: scenario.Kept, Liveness: scenario.Live},
			})
		}
	}
	return d
}

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func changed(c compare.Comparison) (list []string) {
	for _, s := range c.Speed {
		if s.Changed {
			list = append(list, fmt.Sprintf("%s %s %+.1f%%", s.Scenario, s.Metric, 100*s.Change))
		}
	}
	return list
}

// The figures of the same code vary by chance alone: no pair of runs may raise an
// alarm, also where the figures vary by a quarter.
func TestSameCodeRaisesNoAlarm(t *testing.T) {
	for _, noise := range []float64{0.02, 0.1, 0.25} {
		for seed := range uint64(200) {
			r := rng(seed)
			c := compare.Documents(made(r, 12, 10, noise, 1), made(r, 12, 10, noise, 1), compare.Defaults())
			if list := changed(c); len(list) > 0 {
				t.Errorf("noise %g, seed %d: %v", noise, seed, list)
			}
			if c.Tests != 48 {
				t.Fatalf("%d tests, want 48", c.Tests)
			}
		}
	}
}

func TestFindsSlowdown(t *testing.T) {
	for seed := range uint64(100) {
		r := rng(seed)
		c := compare.Documents(made(r, 12, 10, 0.03, 1), made(r, 12, 10, 0.03, 1.2), compare.Defaults())
		list := strings.Join(changed(c), "; ")
		if !strings.Contains(list, "lock0-8c acquire.p50 +") || !strings.Contains(list, "lock0-8c acquire.p99 +") || strings.Contains(list, "lock1") {
			t.Errorf("seed %d: %s", seed, list)
		}
	}
}

// The smallest change that a comparison could have found is found when it is planted
// in the same repeats.
func TestFindableChange(t *testing.T) {
	for seed := range uint64(20) {
		same := func(noise, slower float64) compare.Comparison {
			return compare.Documents(made(rng(seed), 3, 10, noise, 1), made(rng(seed), 3, 10, noise, slower), compare.Defaults())
		}
		for _, noise := range []float64{0.001, 0.05, 0.1} {
			for _, s := range same(noise, 1).Speed[:3] {
				f := s.Findable
				if f < 0.1 || noise == 0.001 && f != 0.1 || noise > 0.001 && f < noise {
					t.Errorf("noise %g, seed %d: %s: a change of %g could have been found", noise, seed, s.Metric, f)
				}
				slower := 1 + f
				if s.Metric == "throughput" {
					slower = 1 / (1 - f)
				}
				if list := strings.Join(changed(same(noise, slower+1e-6)), "; "); !strings.Contains(list, "lock0-8c "+s.Metric) {
					t.Errorf("noise %g, seed %d: no change of %s by %g in %s", noise, seed, s.Metric, f, list)
				}
			}
		}
	}
	var b bytes.Buffer
	o := compare.Defaults()
	for _, text := range []string{"throughput < -20%", "acquire.p99 > +400%"} {
		rule, err := compare.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Rules = append(o.Rules, rule)
	}
	if c := compare.Documents(made(rng(1), 1, 10, 0.02, 1), made(rng(2), 1, 10, 0.02, 1), o); len(c.Failed)+len(c.Weak) > 0 {
		t.Errorf("quiet runs: failed %v, weak %v", c.Failed, c.Weak)
	}
	c := compare.Documents(made(rng(1), 1, 10, 0.02, 1), made(rng(2), 1, 10, 1.5, 1), o)
	if len(c.Failed) > 0 || len(c.Weak) != 2 {
		t.Errorf("noisy runs: failed %v, weak %v", c.Failed, c.Weak)
	}
	if err := c.Text(&b); err != nil || !strings.Contains(b.String(), "contended-lock0-8c  ~ (>100%)   ~ (>100%)    ~ (>100%)") ||
		!strings.Contains(b.String(), "contended-lock0-8c: throughput < -20%: the smallest change that could have been found: >100%\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// A change that is certain, but small, may be the machine's.
func TestSmallChange(t *testing.T) {
	r := rng(1)
	base, new := made(r, 1, 10, 0.001, 1), made(r, 1, 10, 0.001, 1.05)
	if list := changed(compare.Documents(base, new, compare.Defaults())); len(list) > 0 {
		t.Errorf("changes below 10 %%: %v", list)
	}
	if list := changed(compare.Documents(base, new, compare.Options{Alpha: 0.002, MinChange: 0.01})); len(list) != 3 {
		t.Errorf("changes of 5 %% with a smallest change of 1 %%: %v", list)
	}
}

// On a busy machine the repeats of a run differ as much as the two runs do.
func TestBusyMachine(t *testing.T) {
	for seed := range uint64(50) {
		r := rng(seed)
		o := compare.Defaults()
		o.Rules = []compare.Rule{{Metric: "throughput", Change: -0.05}}
		c := compare.Documents(made(r, 1, 10, 0.02, 1), made(r, 1, 10, 0.2, 1.2), o)
		for _, s := range c.Speed {
			if s.Changed && math.Abs(s.Change) < s.Spread {
				t.Errorf("seed %d: %+v", seed, s)
			}
			if s.Metric == "throughput" && strings.HasPrefix(s.Refused, "the repeats of a run differ") && (len(c.Failed) != 1 || c.Failed[0].Open == "") {
				t.Errorf("seed %d: a rule is decided by %+v: %+v", seed, s, c.Failed)
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	other := func(change func(*scenario.Document)) scenario.Document {
		d := made(rng(2), 2, 10, 0.03, 1.5)
		change(&d)
		return d
	}
	for name, c := range map[string]struct {
		new  scenario.Document
		want string
	}{
		"few repeats":           {made(rng(2), 2, 3, 0.03, 1.5), "too few repeats, 10 and 3"},
		"few for so many tests": {made(rng(2), 2, 5, 0.03, 1.5), "too few repeats for 8 tests"},
		"another machine":       {other(func(d *scenario.Document) { d.Host.CPUs = 4 }), "the environments differ"},
		"another server": {other(func(d *scenario.Document) {
			for i := range d.Scenarios {
				d.Scenarios[i].Version = "8"
			}
		}), "the environments differ"},
		"another hold": {other(func(d *scenario.Document) {
			for i := range d.Scenarios {
				d.Scenarios[i].Workload.Hold = scenario.Constant(5)
			}
		}), "workload: hot-key, hold 0s"},
		"a busy machine": {other(func(d *scenario.Document) {
			for i := range d.Scenarios {
				d.Scenarios[i].Warnings = []string{"machine busy: 99 % of its CPU time was used"}
			}
		}), "the machine was busy during 0 of 10 repeats in BASE and 10 of 10 in NEW"},
		"few on a quiet machine": {other(func(d *scenario.Document) {
			for i := range 10 { // the first five repeats
				d.Scenarios[i].Warnings = []string{"machine busy: 99 % of its CPU time was used"}
			}
		}), "too few repeats for 8 tests at once, 10 and 5: 8 are needed; those on a busy machine do not count"},
		"few acquires": {other(func(d *scenario.Document) {
			for i := range d.Scenarios {
				d.Scenarios[i].Status = scenario.StatusFailed
			}
		}), ""},
	} {
		got := compare.Documents(made(rng(1), 2, 10, 0.03, 1), c.new, compare.Defaults())
		if list := changed(got); len(list) > 0 {
			t.Errorf("%s: %v", name, list)
		}
		var page bytes.Buffer
		if err := got.Text(&page); err != nil || !strings.Contains(page.String(), "; speed: not compared\n") {
			t.Errorf("%s: %v\n%s", name, err, page.String())
		}
		for _, s := range got.Speed {
			if !strings.HasPrefix(s.Refused, c.want) {
				t.Errorf("%s: %s %s refused by %q, want %q", name, s.Scenario, s.Metric, s.Refused, c.want)
			}
		}
	}
	o := compare.Defaults()
	o.Anyway = true
	var b bytes.Buffer
	busy := other(func(d *scenario.Document) {
		d.Scenarios[0].Warnings = []string{"machine busy: 99 % of its CPU time was used"}
	})
	if err := compare.Documents(made(rng(1), 2, 10, 0.03, 1), busy, o).Text(&b); err != nil || !strings.Contains(b.String(), "busy during 0 of 20 repeats in BASE and 1 of 20 in NEW, so a change may be the machine's") {
		t.Errorf("compared anyway: %v\n%s", err, b.String())
	}
	if list := changed(compare.Documents(made(rng(1), 2, 10, 0.03, 1), other(func(d *scenario.Document) { d.Host.CPUs = 4 }), o)); len(list) != 3 {
		t.Errorf("compared anyway: %v", list)
	}
}

func TestSafetyFirst(t *testing.T) {
	r := rng(3)
	base, new := made(r, 4, 3, 0.1, 1), made(r, 4, 3, 0.1, 1)
	base.Scenarios[1].Safety.Promise = scenario.Broken // lock1 in one of three repeats
	new.Scenarios[0].Safety.Verdict = scenario.Unsafe  // lock0 in one of three repeats
	for i := range new.Scenarios {
		if i%4 == 2 {
			new.Scenarios[i].Safety.Liveness = scenario.Undecided
		}
	}
	new.Scenarios[3].Safety.Liveness = scenario.Undecided // two others are live
	c := compare.Documents(base, new, compare.Defaults())
	var got []string
	for _, s := range c.Safety {
		got = append(got, strings.Join([]string{s.Change, s.Scenario, s.Answer, s.Base, s.New, s.NewRuns}, " "))
	}
	want := []string{
		"worse contended-lock0-8c verdict safe unsafe 1 of 3 repeats",
		"unproven contended-lock2-8c liveness live unknown 3 of 3 repeats",
		"unproven contended-lock3-8c liveness live unknown 1 of 3 repeats",
		"better contended-lock1-8c guarantee broken kept 3 of 3 repeats",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for format, write := range map[string]func(*bytes.Buffer) error{
		"text":     func(b *bytes.Buffer) error { return c.Text(b) },
		"markdown": func(b *bytes.Buffer) error { return c.Markdown(b) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if text := b.String(); !strings.Contains(text, "safety: 1 worse, 2 unproven, 1 better") || strings.Index(text, "SAFETY") > strings.Index(text, "SPEED") {
			t.Errorf("%s:\n%s", format, text)
		}
	}
}

func TestProperties(t *testing.T) {
	doc := func(measured ...string) (d scenario.Document) {
		r := scenario.Result{Name: "all-lock-r1", Repeat: 1, Status: scenario.StatusDone, Workload: scenario.Load{Kind: scenario.Properties}}
		for i, name := range []string{"exclusive", "ordered", "blocking", "extends"} {
			r.Properties = append(r.Properties, scenario.Property{Property: name, Promised: scenario.Yes, Measured: measured[i]})
		}
		d.Scenarios = []scenario.Result{r}
		return d
	}
	c := compare.Documents(doc("yes", "yes", "no", "yes"), doc("no", "unknown", "yes", "yes"), compare.Defaults())
	var got []string
	for _, s := range c.Safety {
		got = append(got, s.Change+" "+s.Scenario+" "+s.Answer)
	}
	if want := "worse all-lock exclusive; unproven all-lock ordered; better all-lock blocking"; strings.Join(got, "; ") != want || len(c.Speed) > 0 {
		t.Errorf("%q, speed %v, want %q", got, c.Speed, want)
	}
}

func TestScenariosOfOneRunAlone(t *testing.T) {
	base, new := made(rng(1), 3, 10, 0.1, 1), made(rng(2), 2, 10, 0.1, 1)
	c := compare.Documents(base, new, compare.Defaults())
	if c.Compared != 2 || len(c.OnlyBase) != 1 || c.OnlyBase[0] != "contended-lock2-8c" || len(c.OnlyNew) != 0 {
		t.Errorf("compared %d, only in BASE %v, only in NEW %v", c.Compared, c.OnlyBase, c.OnlyNew)
	}
}

// A scenario that ran in neither run says nothing about safety.
func TestScenarioThatRanInNeitherRun(t *testing.T) {
	missing := func(seed uint64) scenario.Document {
		d := made(rng(seed), 2, 3, 0.1, 1)
		for i := range d.Scenarios {
			if i%2 == 1 {
				d.Scenarios[i] = scenario.Result{Name: d.Scenarios[i].Name, Repeat: d.Scenarios[i].Repeat, Status: scenario.StatusMissing}
			}
		}
		return d
	}
	c := compare.Documents(missing(1), missing(2), compare.Defaults())
	var b bytes.Buffer
	if err := c.Text(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{"safety unchanged; speed: not compared", "no answer changed in 1 scenario\n", "RAN IN NEITHER\n  contended-lock1-8c"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if c.Compared != 1 {
		t.Errorf("%d scenarios compared, want 1", c.Compared)
	}
}

func TestRules(t *testing.T) {
	rule := func(text string) compare.Rule {
		r, err := compare.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	base := made(rng(1), 2, 10, 0.03, 1)
	for text, c := range map[string]struct {
		slower float64
		want   string // of each failed rule
	}{
		"acquire.p99 > +20%":  {1.5, "contended-lock0-8c: acquire.p99 > +20%"},
		"acquire.p99 > +80%":  {1.5, ""},
		"throughput < -10%":   {1.5, "contended-lock0-8c: throughput < -10%"},
		"throughput > +10%":   {1.5, ""},
		"acquire.p50 > +20 %": {1, ""},
		"recovery > 10%":      {1, "recovery > 10%: not decided: no scenario of both runs measured recovery"},
	} {
		o := compare.Defaults()
		o.Rules = []compare.Rule{rule(text)}
		var got []string
		for _, g := range compare.Documents(base, made(rng(2), 2, 10, 0.03, c.slower), o).Failed {
			got = append(got, g.String())
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s, %g times as slow: %q, want %q", text, c.slower, got, c.want)
		}
	}
	for _, text := range []string{"", "acquire.p99", "acquire.p99 > 20", "acquire.p99 > -20%", "throughput < 10%", "nothing > 10%", "acquire.p99 > x%", "acquire.p99 > 0%"} {
		if _, err := compare.ParseRule(text); err == nil {
			t.Errorf("%q is taken for a rule", text)
		}
	}
	few := compare.Defaults()
	few.Rules = []compare.Rule{rule("acquire.p99 > +20%")}
	if got := compare.Documents(base, made(rng(2), 2, 3, 0.03, 2), few).Failed; len(got) != 2 || got[0].Open == "" {
		t.Errorf("a rule with too few repeats is decided: %+v", got)
	}
}

func TestNamesCannotWriteToTheTerminal(t *testing.T) {
	d := made(rng(1), 1, 10, 0.1, 1)
	for i := range d.Scenarios {
		d.Scenarios[i].Name = "evil\x1b]0;title\a\u202e" + d.Scenarios[i].Name
	}
	var b bytes.Buffer
	if err := compare.Documents(d, d, compare.Defaults()).Text(&b); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\a\u202e") {
		t.Errorf("%q", b.String())
	}
}
