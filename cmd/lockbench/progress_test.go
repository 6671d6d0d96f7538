package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lockbench/lockbench/internal/scenario"
)

// The outcomes are in one column for names of any length.
func TestProgressColumns(t *testing.T) {
	names := []string{"short", "a-name-" + strings.Repeat("x", 60), "middling"}
	var plan scenario.Resolved
	for _, name := range names {
		plan.Scenarios = append(plan.Scenarios, scenario.Scenario{Name: name})
	}
	var out bytes.Buffer
	p := newProgress(&out, plan)
	for i, sc := range plan.Scenarios {
		p.Begin(i+1, len(names), sc)
		p.Done(scenario.Result{Name: sc.Name, Status: scenario.StatusMissing})
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")[1:]
	if len(lines) != len(names) {
		t.Fatalf("%d lines for %d scenarios:\n%s", len(lines), len(names), out.String())
	}
	for _, line := range lines {
		if at, want := strings.Index(line, "missing"), len("[1/3] "+names[1]+" "); at != want {
			t.Errorf("the outcome stands in column %d, want %d: %q", at, want, line)
		}
	}
}

// A lock that is held for seconds has few grants, but not 0/s.
func TestProgressSmallNumbers(t *testing.T) {
	for perSecond, want := range map[float64]string{0: "0/s", 0.083: "0.083/s", 0.58: "0.58/s", 4: "4/s", 9.94: "9.9/s", 9.97: "10/s", 1234.4: "1234/s"} {
		if got := rateText(perSecond); got != want {
			t.Errorf("%v grants a second read %q, want %q", perSecond, got, want)
		}
	}
	asExpected := true
	for overlaps, want := range map[int64]string{0: "unsafe, guarantee kept, live", 1: "unsafe, guarantee kept, live; 1 overlap", 2: "unsafe, guarantee kept, live; 2 overlaps"} {
		r := scenario.Result{Status: scenario.StatusDone, AsExpected: &asExpected}
		r.Workload.Kind = scenario.HotKey
		r.Safety.Verdict, r.Safety.Promise, r.Safety.Liveness, r.Safety.Overlaps = scenario.Unsafe, scenario.Kept, scenario.Live, overlaps
		if got := newProgress(&bytes.Buffer{}, scenario.Resolved{}).outcome(r); got != want {
			t.Errorf("%d overlaps read %q, want %q", overlaps, got, want)
		}
	}
}

// The line of a terminal says how far the run is, and fits 80 columns.
func TestProgressLine(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	long := "contended-" + strings.Repeat("x", 80)
	var plan scenario.Resolved
	for _, name := range []string{"first", long, "third"} {
		plan.Scenarios = append(plan.Scenarios, scenario.Scenario{Name: name, Warmup: scenario.Duration(2 * time.Second), Duration: scenario.Duration(8 * time.Second)})
	}
	var out bytes.Buffer
	p := newProgress(&out, plan)
	p.terminal, p.color = true, true
	// last is the line that the terminal shows.
	last := func() string {
		text := out.String()
		return stripColor(text[strings.LastIndexAny(text, "\r\n")+1:])
	}
	check := func(want string) {
		t.Helper()
		if got := strings.TrimPrefix(last(), "\x1b[K"); got != want || utf8.RuneCountInString(got) >= 80 {
			t.Errorf("the line is %q (%d columns), want %q", got, utf8.RuneCountInString(got), want)
		}
	}
	at := p.started
	p.now = func() time.Time { return at }
	p.Begin(1, 3, plan.Scenarios[0])
	check("0 of 3 done: first")
	at = at.Add(7 * time.Second)
	p.Tick(plan.Scenarios[0], 5*time.Second, 10*time.Second, 100)
	check("0 of 3 done, 35s left: first 5.0s of 10.0s, 20/s")
	p.Violation(plan.Scenarios[0], "two clients hold k0")
	check("")
	at = at.Add(5 * time.Second)
	p.Done(scenario.Result{Name: "first", Status: scenario.StatusDone})
	check("")
	p.Begin(2, 3, plan.Scenarios[1])
	p.Begin(3, 3, plan.Scenarios[2])
	p.Tick(plan.Scenarios[1], 0, 10*time.Second, 0)
	check("1 of 3 done, 24s left, 1 unsafe: contended-xxxxxxxx… 0.0s of 10.0s (and 1 more)")
	p.Tick(plan.Scenarios[2], 5*time.Second, 10*time.Second, 0)
	check("1 of 3 done, 24s left, 1 unsafe: contended-xxxxxxxx… 0.0s of 10.0s (and 1 more)")
	p.Done(scenario.Result{Name: long, Status: scenario.StatusMissing})
	p.Tick(plan.Scenarios[2], 5*time.Second, 10*time.Second, 12)
	check("2 of 3 done, 4s left, 1 unsafe: third 5.0s of 10.0s, 2.4/s")
	t.Setenv("COLUMNS", "30")
	p.Tick(plan.Scenarios[2], 5*time.Second, 10*time.Second, 12)
	if got := last(); utf8.RuneCountInString(strings.TrimPrefix(got, "\x1b[K")) >= 30 {
		t.Errorf("too long for 30 columns: %q", got)
	}
}
