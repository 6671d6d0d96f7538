package run

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/workloads"
)

// look is how often the board is searched for keys that two clients hold.
const look = 20 * time.Millisecond

// maxReported bounds the double holds that are reported while a scenario runs.
const maxReported = 3

// watch counts double holds in seen while the clients work, and reports the first. It
// is for the user at the screen: the check at the end judges the history, which also
// has the holds that were too short for a look, and all other violations.
func (r *runner) watch(ctx context.Context, sc scenario.Scenario, clients boardClients, window int64, seen *atomic.Int64) {
	t := time.NewTicker(look)
	defer t.Stop()
	var before []workloads.DoubleHold
	counted := map[workloads.DoubleHold]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		found := clients.board.DoubleHolds()
		for _, d := range found {
			// A client holds a little shorter than the board shows if it was killed,
			// or if a renewal found the lock lost: two looks must agree.
			if slices.Contains(before, d) && !counted[d] && clients.lives(d.First.Client) && clients.lives(d.Second.Client) {
				counted[d] = true
				if seen.Add(1) <= maxReported {
					r.Progress.Violation(sc, doubleHoldText(d, window))
				}
			}
		}
		before = found
	}
}

// doubleHoldText counts time as the report does, so that the overlap can be found
// there.
func doubleHoldText(d workloads.DoubleHold, window int64) string {
	return fmt.Sprintf("at %s clients %d and %d both hold k%d", measure.Moment(d.Second.Since, window), d.First.Client, d.Second.Client, d.Second.Key)
}
