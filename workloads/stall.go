package workloads

import (
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

const (
	stallCheck = 20 * time.Millisecond
	// stallLeast is the shortest stall that counts; shorter ones are within what
	// every bound allows for a busy machine.
	stallLeast = 250 * time.Millisecond
	// stallMost bounds the list: a machine with more of them is no place to measure.
	stallMost = 1000
)

// stalls watches until the load is over for times in which the machine did not let
// this process run: it sleeps again and again, and sees how late it wakes.
func (l *load) stalls(finished <-chan struct{}) (list []scenario.Stall) {
	tick := time.NewTicker(stallCheck)
	defer tick.Stop()
	last := l.clock.Now()
	for {
		select {
		case <-finished:
			return list
		case <-tick.C:
		}
		now := l.clock.Now()
		if now-last > int64(stallLeast) && len(list) < stallMost {
			list = append(list, scenario.Stall{From: last, To: now})
		}
		last = now
	}
}
