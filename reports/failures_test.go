package reports

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Locks that must fail stand in the matrix beside those that must hold; one that did
// not fail is marked there, and its scenario is named at the end.
func TestKnownFailures(t *testing.T) {
	var d scenario.Document
	for i := range 4 {
		k := kinds()[i]
		load := scenario.Load{Kind: "hot-key", Keys: 1, Arrival: "closed", Hold: scenario.Constant(0)}
		fails := synthetic(k, fmt.Sprint("breaks-", i), load, 4, 1)
		fails.Expect = scenario.Expect{Verdict: scenario.Unsafe, Promise: scenario.Broken}
		fails.Safety.Causes = []scenario.Cause{{Cause: "a foreign release", Count: 2}}
		fails.Safety.Verdict, fails.Safety.Promise = scenario.Unsafe, scenario.Broken
		holds := synthetic(k, fmt.Sprint("breaks-", i), load, 4, 1)
		holds.Recipe, holds.Expect = k.backend+"/sound", scenario.Expect{Verdict: scenario.Safe}
		if i == 0 {
			fails.Safety.Verdict, fails.Safety.Promise = scenario.Safe, scenario.Kept
			fails.AsExpected, fails.Surprises = ptr(false), []string{"it held"}
		}
		d.Scenarios = append(d.Scenarios, fails, holds)
	}
	c := build(run{doc: d})
	for i, r := range c.Sections[0].Tables[0].Rows {
		want := map[int]string{0: "safe !", 2: "unsafe, broken", 4: "unsafe, broken", 6: "unsafe, broken"}[i]
		if got := r.Cells[1]; got.Text != or(want, "safe") || want == "unsafe, broken" && !strings.Contains(got.Hover, "a foreign release") {
			t.Errorf("%s: %q (%s), want %q", r.Head, got.Text, got.Hover, or(want, "safe"))
		}
	}
	if len(c.Surprises) != 1 || c.Surprises[0].Text != "it held" {
		t.Errorf("%+v", c.Surprises)
	}
}
