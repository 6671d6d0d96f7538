package reports

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

// A recipe is reported as within the takeover bound only if it declares one and
// was not later.
func TestSucceeded(t *testing.T) {
	for _, tc := range []struct {
		bound, judged, death int64
		want                 string
	}{
		{2 * sec, 2500 * msec, 1900 * msec, "within the takeover bound"},
		{2 * sec, 2500 * msec, 2100 * msec, "After the takeover bound, but within"},
		{2 * sec, 2500 * msec, 2600 * msec, "After the takeover bound and the allowance"},
		{0, 0, 300 * msec, "although the recipe declares no takeover bound"},
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
		if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "Not granted again") }) || strings.Contains(strings.Join(got, " "), "within the takeover") {
			t.Errorf("%+v, one never granted: %q", tc, got)
		}
	}
}
