package measure

import (
	"reflect"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

func TestProperties(t *testing.T) {
	yes, no := ptr(true), ptr(false)
	for _, tc := range []struct {
		name               string
		promised, measured string
		want               *bool
		surprise           string
	}{
		{"as promised", scenario.Yes, scenario.Yes, yes, ""},
		{"as not promised", scenario.No, scenario.No, yes, ""},
		{"worse than promised", scenario.Yes, scenario.No, no, "ordered: promised yes, measured no: it was seen"},
		{"better than promised", scenario.No, scenario.Yes, no, "ordered: promised no, measured yes"},
		{"not applicable", scenario.No, scenario.NotApplicable, yes, ""},
		{"promised, but not applicable", scenario.Yes, scenario.NotApplicable, no, "ordered: promised yes, measured n/a"},
		{"not decided", scenario.No, scenario.Undecided, nil, "inconclusive"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			info := leased()
			writeJSON(t, dir, scenario.FileScenario, scenario.Scenario{
				Name: "p", Recipe: info.ID, Workload: scenario.Load{Kind: scenario.Properties, Keys: 1, Hold: scenario.Constant(0), Think: scenario.Constant(0)},
				Poll: scenario.Poll{Min: 1, Max: 2},
			})
			writeJSON(t, dir, scenario.FileProperties, []scenario.Property{
				{Property: "exclusive", Promised: scenario.Yes, Measured: scenario.Yes},
				{Property: "ordered", Promised: tc.promised, Measured: tc.measured, Evidence: "it was seen"},
			})
			r, err := Scenario(dir, info, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Properties) != 2 || r.Status != scenario.StatusDone || r.Throughput != nil || r.Unmeasured["throughput_per_s"] == "" {
				t.Errorf("result %+v", r)
			}
			if !reflect.DeepEqual(r.AsExpected, tc.want) || !strings.Contains(strings.Join(r.Surprises, "\n"), tc.surprise) || (tc.surprise == "") != (len(r.Surprises) == 0) {
				t.Errorf("as expected %v, surprises %q", r.AsExpected, r.Surprises)
			}
		})
	}
}
