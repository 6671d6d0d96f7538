package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/scenario"
)

// What came of a scenario stands in one column, however long the names are.
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
