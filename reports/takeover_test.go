package reports

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

// TestSucceeded: "within the promised bound" is said of nobody who was later, or
// who promised nothing.
func TestSucceeded(t *testing.T) {
	for _, tc := range []struct {
		bound, judged, death int64
		want                 string
	}{
		{2 * sec, 2500 * msec, 1900 * msec, "within the promised bound"},
		{2 * sec, 2500 * msec, 2100 * msec, "After the promised bound, by no more than"},
		{2 * sec, 2500 * msec, 2600 * msec, "Later than promised"},
		{0, 0, 300 * msec, "though nothing was promised"},
	} {
		r := scenario.Result{
			Name: "a", Recipe: "test/lock", Status: scenario.StatusDone, Clients: 2, Workload: scenario.Load{Kind: scenario.Takeover},
			Takeover: &scenario.TakeoverTimes{Holds: 1, Granted: 1, BoundNS: tc.bound, Each: []scenario.OneTakeover{{FromDeathNS: tc.death}}},
			Safety:   scenario.Safety{TakeoverBoundNS: tc.judged},
		}
		got := succeeded(experiments([]result{r}))
		if len(got) != 1 || !strings.Contains(got[0], tc.want) {
			t.Errorf("%+v: %q, want %q", tc, got, tc.want)
		}
		r.Takeover.Holds = 2 // the other one was never granted
		got = succeeded(experiments([]result{r}))
		if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "Never granted again") }) || strings.Contains(strings.Join(got, " "), "within the promised") {
			t.Errorf("%+v, one never granted: %q", tc, got)
		}
	}
}
