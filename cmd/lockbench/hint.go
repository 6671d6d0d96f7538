package main

import (
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// shortHold is below what the hand-over of a contended lock takes on most
// servers: with holds that short the lock is free for most of the time.
const shortHold = 10 * time.Millisecond

// tellingHold is one that a fault can hardly miss.
const tellingHold = "50ms"

// holdHint says that a fault on servers, which does not wait for a holder, will
// hardly meet one, since holds are as short as they are where nobody says
// otherwise; "" if nothing needs to be said.
func holdHint(scenarios []scenario.Scenario) string {
	for _, sc := range scenarios {
		for _, f := range sc.Faults {
			kind, ok := scenario.ParseFaultKind(f.Kind)
			if !ok || kind.OnClient() || kind.Target == scenario.TargetServing || f.Step != "" || f.After > 0 || sc.Workload.Hold.A >= shortHold {
				continue
			}
			return fmt.Sprintf("a hold lasts %s, so that hardly any stands when %s comes, and safe says little: --hold %s, or --step held, lets it meet a holder", sc.Workload.Hold, kind, tellingHold)
		}
	}
	return ""
}
