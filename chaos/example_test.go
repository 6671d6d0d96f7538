package chaos_test

import (
	"fmt"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/scenario"
)

// The plan of a scenario is known before it runs: the seed decides every time.
func ExamplePlan() {
	plan := chaos.Plan(scenario.Scenario{
		Seed:     1,
		Duration: scenario.Duration(20 * time.Second),
		Faults: []scenario.Fault{
			{Kind: "leader-restart", At: scenario.Duration(9 * time.Second)},
			{Kind: "holder-pause", At: scenario.Duration(2 * time.Second), For: scenario.Duration(10 * time.Second)},
		},
	})
	for _, fault := range plan {
		fmt.Println(fault.ID, "at", time.Duration(fault.At))
	}
	// Output:
	// holder-pause-1 at 2s
	// leader-restart-2 at 9s
}
