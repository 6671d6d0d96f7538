package chaos

import (
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

func TestPlanText(t *testing.T) {
	sc := scenario.Scenario{Faults: []scenario.Fault{
		{Kind: "leader-kill", At: 3000 * ms, For: 2000 * ms, Step: "held", Nth: 3},
		{Kind: "holder-delay", At: 1000 * ms, For: 4000 * ms, By: 50 * ms, Jitter: 10 * ms, After: 0.8},
		{Kind: "step-kill", At: 1000 * ms, Step: "waiting"},
		{Kind: "node:2-throttle", At: 4000 * ms, For: 1000 * ms, Rate: 10000},
	}}
	want := `holder-delay-1     from 1s, when the hold is 0.8 TTL old  for 4s, by 50ms, jitter up to 10ms
step-kill-2        from 1s, while a client stands at the step waiting
leader-kill-3      from 3s, while client number 3 stands at the step held  for 2s
node:2-throttle-4  at 4s                                                   for 1s, 10000 bytes a second
`
	if got := PlanText(sc); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := PlanText(scenario.Scenario{}); got != "" {
		t.Errorf("without faults: %q", got)
	}
	if sc.Faults[0].Kind != "leader-kill" {
		t.Error("the scenario was sorted")
	}
}
