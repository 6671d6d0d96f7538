package main

import (
	"bytes"
	"strings"
	"testing"

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
