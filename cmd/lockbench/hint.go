package main

import (
	"fmt"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/scenario"
)

// shortHold is about the handoff of a contended lock on most servers: with shorter
// holds the lock is free most of the time.
const shortHold = 10 * time.Millisecond

// longHold is a hold that a fault can hardly miss.
const longHold = "50ms"

// holdHint warns that a fault on servers, which does not wait for a holder, will
// probably miss one because the default holds are short; "" without a warning.
func holdHint(scenarios []scenario.Scenario) string {
	for _, sc := range scenarios {
		for _, f := range sc.Faults {
			kind, ok := chaos.ParseKind(f.Kind)
			if !ok || kind.OnClient() || kind.Target == scenario.TargetServing || f.Step != "" || f.After > 0 || sc.Workload.Hold.A >= shortHold {
				continue
			}
			return fmt.Sprintf("a hold lasts only %s, so %s will probably not hit a holder and a safe verdict means little; use --hold %s or --step held", sc.Workload.Hold, kind, longHold)
		}
	}
	return ""
}
