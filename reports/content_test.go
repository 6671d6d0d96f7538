package reports

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

func TestMedianAndSpread(t *testing.T) {
	runs := func(vs ...float64) []result {
		var rs []result
		for _, v := range vs {
			rs = append(rs, result{Status: scenario.StatusDone, Throughput: &v})
		}
		return rs
	}
	failed := result{Status: scenario.StatusFailed, Throughput: ptr(1e9)}
	for _, c := range []struct {
		rs   []result
		want stat
	}{
		{nil, stat{}},
		{runs(5), stat{1, 5, 5, 5}},
		{runs(9, 1, 4), stat{3, 4, 1, 9}},
		{runs(9, 1, 4, 6), stat{4, 5, 1, 9}},
		{append(runs(2), failed, result{Status: scenario.StatusDone}), stat{1, 2, 2, 2}},
	} {
		if got := statOf(c.rs, mThroughput().get); got != c.want {
			t.Errorf("got %+v, want %+v", got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for in, want := range map[float64]string{0: "0s", 1: "1ns", 999: "999ns", 999.6: "1.00µs", 1240: "1.24µs", 999_949: "1.00ms", 1_236_000: "1.24ms", 12_360_000: "12.4ms", 123.6e6: "124ms", 999.6e6: "1.00s", 10.051e9: "10.1s", 3720e9: "1h2m0s", -5e6: "-5.00ms"} {
		if got := nanos(in); got != want {
			t.Errorf("nanos(%g) = %s, want %s", in, got, want)
		}
	}
	for in, want := range map[float64]string{0: "0", 412: "412", 999.6: "1.00k", 61_230: "61.2k", 1.24e6: "1.24M", 0.5: "0.500"} {
		if got := rate(in); got != want {
			t.Errorf("rate(%g) = %s, want %s", in, got, want)
		}
	}
	for in, want := range map[int64]string{0: "0", 9999: "9999", 10000: "10,000", 1234567: "1,234,567", -45678: "-45,678"} {
		if got := count(in); got != want {
			t.Errorf("count(%d) = %s, want %s", in, got, want)
		}
	}
}

// The controls' line must turn bad on a miss and on a false accusation.
func TestControlsTellMissAndAccusation(t *testing.T) {
	class := func(d scenario.Document, name string) (string, class) {
		for _, s := range build(run{doc: d}).Sections {
			for _, tb := range s.Tables {
				for _, r := range tb.Rows {
					if s.Title == "CONTROLS" && r.Head == name {
						return r.Cells[3].Text, r.Cells[3].Class
					}
				}
			}
		}
		t.Fatalf("no row of %s", name)
		return "", ""
	}
	d := selfTestDoc()
	if text, c := class(d, "reference/broken"); text != "caught 20 of 20" || c != good {
		t.Errorf("%s, %q", text, c)
	}
	if text, c := class(d, "reference/mutex"); text != "accused 0 of 20" || c != good {
		t.Errorf("%s, %q", text, c)
	}
	for i := range d.Scenarios {
		s := &d.Scenarios[i]
		if s.Repeat != 7 {
			continue
		}
		if s.Recipe == "reference/broken" {
			s.Safety = scenario.Safety{Verdict: scenario.Safe, Promise: scenario.Kept}
		} else {
			s.Safety.Verdict = scenario.Unsafe
		}
	}
	if text, c := class(d, "reference/broken"); text != "caught 19 of 20" || c != bad {
		t.Errorf("%s, %q", text, c)
	}
	if text, c := class(d, "reference/mutex"); text != "accused 1 of 20" || c != bad {
		t.Errorf("%s, %q", text, c)
	}
}

// Repeats that overlap show no difference; repeats that do not, do.
func TestFastestKnowsWhenItIsATie(t *testing.T) {
	d := quickDoc()
	says := func() string { return strings.Join(answers(run{doc: d}, experiments(d.Scenarios)), "\n") }
	if strings.Contains(says(), "no clear difference") {
		t.Error("a clear order is called a tie")
	}
	for i := range d.Scenarios {
		if s := &d.Scenarios[i]; s.Group == "contended" && s.Recipe == "etcd/mutex" {
			s.Throughput = ptr(425.0 + 3*float64(s.Repeat))
		}
	}
	if !strings.Contains(says(), "no clear difference") {
		t.Errorf("a tie is called an order:\n%s", says())
	}
}

// A fenced register that had nothing to refuse proves nothing of tokens.
func TestTokensThatWereNotTested(t *testing.T) {
	d := quickDoc()
	says := func() string { return strings.Join(answers(run{doc: d}, experiments(d.Scenarios)), "\n") }
	if strings.Contains(says(), "not tested") {
		t.Error("refused calls are overlooked")
	}
	for _, r := range d.Scenarios {
		for j := range r.Safety.Registers {
			r.Safety.Registers[j].Rejected = 0
		}
	}
	if !strings.Contains(says(), "not tested") {
		t.Errorf("tokens are reported as tested although nothing was rejected:\n%s", says())
	}
}

// One unknown or unsafe run among safe ones decides the cell.
func TestWorstAnswerCounts(t *testing.T) {
	with := func(vs ...string) []result {
		var rs []result
		for _, v := range vs {
			rs = append(rs, result{Safety: scenario.Safety{Verdict: v}})
		}
		return rs
	}
	for _, c := range []struct {
		rs   []result
		want string
	}{
		{with("safe", "safe"), "safe"}, {with("safe", "unknown"), "unknown"}, {with("unknown", "unsafe", "safe"), "unsafe"}, {with("safe", ""), "unknown"}, {with("safe", "sure"), "unknown"}, {nil, "unknown"},
	} {
		if got := worstVerdict(c.rs); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// Loads that differ must not share a row as if they were repeats.
func TestExperimentsKeepSweepsApart(t *testing.T) {
	base := quickDoc().Scenarios[15]
	var rs []result
	for i := range 4 {
		r := base
		switch i {
		case 1:
			r.Workload.Hold = scenario.Dist{Kind: scenario.DistConstant, A: 5e6}
		case 2:
			r.TTL *= 2
		case 3:
			r.Workload.Keys = 100
		}
		rs = append(rs, r, r)
	}
	es := experiments(rs)
	if len(es) != 4 {
		t.Fatalf("%d experiments, want 4", len(es))
	}
	for _, e := range es {
		if e.repeats() != 2 {
			t.Errorf("%d repeats, want 2", e.repeats())
		}
	}
}

func TestColourOnlyWhenAsked(t *testing.T) {
	if s := tableText(t, quickDoc(), TextOptions{}); strings.Contains(s, "\x1b") {
		t.Error("colour in a plain summary")
	}
	s := tableText(t, quickDoc(), TextOptions{Color: true})
	if !strings.Contains(s, "\x1b[31munsafe\x1b[0m") || !strings.Contains(s, "\x1b[32mkept\x1b[0m") {
		t.Error("no colour though asked for")
	}
	strip := strings.NewReplacer("\x1b[0m", "", "\x1b[1m", "", "\x1b[2m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "").Replace(s)
	if strip != tableText(t, quickDoc(), TextOptions{}) {
		t.Error("colour changes the layout")
	}
}

// A sentence of one thing is not that of many with the number put in.
func TestSentencesOfOne(t *testing.T) {
	r := synthetic(kinds()[0], "contended", scenario.Load{Kind: scenario.HotKey}, 2, 1)
	r.Safety.Verdict, r.AsExpected = scenario.Unsafe, ptr(false)
	if got, want := calm(experiments([]result{r})), "Without faults, the one contended run was unsafe: redis/token (in contended)."; len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
	two := r
	two.Recipe = "redis/fenced"
	if got, want := strings.Join(calm(experiments([]result{r, two})), ""), "Without faults, 0 of 2 contended runs were safe"; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}

	r.Safety.Verdict, r.AsExpected, r.Surprises, r.Expect = scenario.Undecided, nil, []string{"inconclusive: a planned fault missed, no client held the lock"}, scenario.Expect{Verdict: scenario.Safe}
	two.AsExpected = nil
	d := scenario.Document{Scenarios: []result{r, two}}
	if got := surprises(d); len(got) != 1 || got[0].Kind != "inconclusive" || got[0].Text != "a planned fault missed, no client held the lock" {
		t.Errorf("it is inconclusive once: %+v", got)
	}
	if got, _ := closing(d, true); got != "2 scenarios, 1 inconclusive, 1 without expectation." {
		t.Errorf("%q", got)
	}
	// Beside another word the text's own stands.
	d.Scenarios[0].AsExpected = ptr(false)
	if got := surprises(d); len(got) != 1 || got[0].Text != r.Surprises[0] {
		t.Errorf("not as expected, and a doubt: %+v", got)
	}
}

// A recipe that renews has its requests per acquire with renewals and without.
func TestRequestsWithoutRenewal(t *testing.T) {
	requests, renewals := 8.5, 6.8
	of := func(recipe, bound string, renewals *float64) scenario.Result {
		return scenario.Result{Recipe: recipe, Status: scenario.StatusDone, Bound: bound, Clients: 1, Repeat: 1, Workload: scenario.Load{Kind: scenario.HotKey}, RequestsPerAcquire: &requests, RenewalsPerAcquire: renewals}
	}
	es := experiments([]result{of("redis/watchdog", "ttl", &renewals), of("etcd/mutex", "session", &renewals), of("redis/token", "ttl", nil)})
	want := []string{"Requests per acquire with the cost of renewal: redis/watchdog 8.50, 1.70 without renewal and etcd/mutex 15.30, 8.50 without renewal."}
	if got := renewalLine(es[0]); strings.Join(got, "|") != want[0] {
		t.Errorf("%q", got)
	}
}
