package reports

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// The faults that had an effect are annotations at times of the wall clock.
func TestAnnotations(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	faults := []scenario.FaultResult{
		{Kind: "holder-pause", Status: "effective", Target: "client 3\x1b[2J", InjectedNS: 1500 * msec, HealedNS: 11*sec + 700},
		{Kind: "holder-kill", Status: "effective", Target: "client 1", InjectedNS: -2 * sec},
		{Kind: "holder-cut", Status: "missed", InjectedNS: sec},
	}
	doc := scenario.Document{Scenarios: []scenario.Result{
		{Name: "one", Recipe: "redis/token", WindowAt: at, Faults: faults},
		{Name: "without the wall clock", Recipe: "redis/token", Faults: faults},
	}}
	const want = `[
  {
    "time": 1800000001500,
    "timeEnd": 1800000011000,
    "tags": [
      "lockbench",
      "holder-pause",
      "redis/token"
    ],
    "text": "holder-pause of client 3\\u001b[2J in one"
  },
  {
    "time": 1799999998000,
    "timeEnd": 1799999998000,
    "tags": [
      "lockbench",
      "holder-kill",
      "redis/token"
    ],
    "text": "holder-kill of client 1 in one"
  }
]
`
	if got, err := annotations(doc); err != nil || string(got) != want {
		t.Errorf("%s (%v)", got, err)
	}
	doc.Scenarios = doc.Scenarios[1:]
	if got, err := annotations(doc); err != nil || got != nil {
		t.Errorf("without times: %s (%v)", got, err)
	}
}
