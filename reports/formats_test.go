package reports

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

func parseJUnit(t *testing.T, s string) junitSuites {
	t.Helper()
	var got junitSuites
	if err := xml.Unmarshal([]byte(s), &got); err != nil {
		t.Fatalf("junit.xml: %v", err)
	}
	return got
}

func TestJUnit(t *testing.T) {
	d := quickDoc()
	d.Scenarios[0].AsExpected, d.Scenarios[0].Surprises = ptr(false), []string{"acquire.p99 was 3ms where < 2ms was expected"}
	d.Scenarios[1].Status, d.Scenarios[1].Reason = scenario.StatusFailed, "etcd did not start"
	d.Scenarios[2].Status = scenario.StatusInterrupted
	data, err := junit(run{doc: d})
	if err != nil {
		t.Fatal(err)
	}
	got := parseJUnit(t, string(data))
	if got.Tests != len(d.Scenarios) || got.Failures != 2 || got.Errors != 2 || got.Skipped != 7 {
		t.Errorf("%d tests, %d failures, %d errors, %d skipped", got.Tests, got.Failures, got.Errors, got.Skipped)
	}
	cases := got.Suites[0].Cases
	if f := cases[0].Failure; f == nil || f.Type != "not as expected" || !strings.Contains(f.Message, "p99") {
		t.Errorf("failure %+v", f)
	}
	if e := cases[1].Error; e == nil || e.Type != "failed" || e.Message != "etcd did not start" {
		t.Errorf("error %+v", e)
	}
	if e := cases[2].Error; e == nil || e.Type != "interrupted" {
		t.Errorf("interrupted %+v", e)
	}
	if s := cases[3].Skipped; s == nil || !strings.Contains(s.Message, "apt-get install memcached") {
		t.Errorf("skipped %+v", s)
	}
	inconclusive := 0
	for _, s := range got.Suites {
		for _, c := range s.Cases {
			if c.Failure != nil && c.Failure.Type == "inconclusive" {
				inconclusive++
			}
		}
	}
	if inconclusive != 1 {
		t.Errorf("%d inconclusive, want 1", inconclusive)
	}
}

// A null where something was expected is never a pass.
func TestSilenceIsNoSuccess(t *testing.T) {
	r := scenario.Result{Status: scenario.StatusDone, Expect: scenario.Expect{Verdict: scenario.Safe}}
	if o := outcomeOf(r); o != outcomeInconclusive {
		t.Errorf("null with an expectation: %s", o)
	}
	if o := outcomeOf(scenario.Result{Status: scenario.StatusDone}); o != outcomeNone {
		t.Errorf("nothing expected: %s", o)
	}
	if o := outcomeOf(scenario.Result{}); o != outcomeFailed {
		t.Errorf("no status: %s", o)
	}
	r.AsExpected = ptr(true)
	if o := outcomeOf(r); o != outcomeOK {
		t.Errorf("as expected: %s", o)
	}
}

var (
	benchConfig = regexp.MustCompile(`^[a-z][^\s:A-Z]*: \S.*$`)
	benchLine   = regexp.MustCompile(`^Benchmark[A-Z]\S*\t\d+(\t[0-9.]+ \S+)+$`)
)

func parseBench(t *testing.T, s string) []string {
	t.Helper()
	var names []string
	for _, l := range strings.Split(strings.TrimSuffix(s, "\n"), "\n") {
		switch {
		case benchLine.MatchString(l):
			name, _, _ := strings.Cut(l, "\t")
			names = append(names, name)
		case !benchConfig.MatchString(l):
			t.Errorf("not a benchmark line: %q", l)
		}
	}
	return names
}

func TestBench(t *testing.T) {
	d := quickDoc()
	names := parseBench(t, string(bench(d)))
	want := "BenchmarkLock/workload=hot-key/backend=redis/recipe=token/clients=16"
	n := 0
	for _, name := range names {
		if name == want {
			n++
		}
	}
	if n != 3 {
		t.Errorf("%s stands %d times, want once per repeat", want, n)
	}
	// Two experiments that differ only in the hold must not pass for repeats.
	other := d.Scenarios[15]
	other.Workload.Hold = scenario.Dist{Kind: scenario.DistConstant, A: 5e6}
	d.Scenarios = append(d.Scenarios, other)
	names = parseBench(t, string(bench(d)))
	if got := names[len(names)-1]; got != want+"/hold=5ms" {
		t.Errorf("name %s", got)
	}
	for _, name := range names {
		if name == want {
			t.Error("the hold is hidden in a name that needs it")
		}
	}
}

// A failed case names its first violation, the report, and the command that draws it.
func TestJUnitNamesTheViolation(t *testing.T) {
	d := quickDoc()
	for i := range d.Scenarios {
		if r := &d.Scenarios[i]; len(r.Safety.Witnesses) > 0 {
			r.AsExpected, r.Surprises = ptr(false), []string{"verdict: expected safe, but it is unsafe"}
			data, err := junit(run{dir: "results/a", doc: d})
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("first violation: %s\nreport: results/a/report.html#s%d\nexplain: lockbench check results/a/scenarios/%s --explain 1", r.Safety.Witnesses[0].Sentence, i+1, r.Name)
			for _, s := range parseJUnit(t, string(data)).Suites {
				for _, c := range s.Cases {
					if c.Name == r.Name && (c.Failure == nil || !strings.HasSuffix(c.Failure.Text, want)) {
						t.Errorf("%+v does not end with %q", c.Failure, want)
					}
				}
			}
			return
		}
	}
	t.Fatal("no scenario has a violation")
}

// The page of a job begins with the unsafe locks, and has no links to files.
func TestSummaryOfAJob(t *testing.T) {
	var out strings.Builder
	if err := Summary(&out, quickRun(t)); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if !strings.Contains(text, "**Under holder-pause: 3 of 5 locks let two clients hold the lock at once") || !strings.Contains(text, "| redis/token | **unsafe** |") {
		t.Errorf("the summary:\n%s", text)
	}
	for _, bad := range []string{"](", "<sup>", "## Uncontended"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is in\n%s", bad, text)
		}
	}
}
