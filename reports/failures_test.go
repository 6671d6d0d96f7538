package reports

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Locks that must fail stand together, beside those that must hold; one that did
// not fail is told.
func TestKnownFailures(t *testing.T) {
	var d scenario.Document
	for i := range manyFailures {
		k := kinds()[i]
		load := scenario.Load{Kind: "hot-key", Keys: 1, Arrival: "closed", Hold: scenario.Constant(0)}
		fails := synthetic(k, fmt.Sprint("breaks-", i), load, 4, 1)
		fails.Expect = scenario.Expect{Verdict: scenario.Unsafe, Promise: scenario.Broken}
		fails.Safety.Causes = []scenario.Cause{{Cause: "a foreign release", Count: 2}}
		holds := synthetic(k, fmt.Sprint("breaks-", i), load, 4, 1)
		holds.Recipe, holds.Expect = k.backend+"/sound", scenario.Expect{Verdict: scenario.Safe}
		if i == 0 {
			fails.AsExpected, fails.Surprises = ptr(false), []string{"it held"}
		}
		d.Scenarios = append(d.Scenarios, fails, holds)
	}
	text := renderText(build(run{doc: d}), TextOptions{Width: 160})
	for _, want := range []string{"KNOWN FAILURES", "unsafe, broken  0 of 1  a foreign release", "unsafe, broken  1 of 1", "safe            1 of 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
	d.Scenarios = d.Scenarios[:2]
	if strings.Contains(renderText(build(run{doc: d}), TextOptions{}), "KNOWN FAILURES") {
		t.Error("one failure makes a table of its own")
	}
}
