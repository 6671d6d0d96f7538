package workloads

import (
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// takeOver is the load of a client whose key is wanted by one other. The first
// half of the clients are holders: each takes its key in the warm-up and keeps
// it until it is killed, at the latest until the load ends. They come spread
// over the warm-up, so that a kill finds leases of every age. The second half
// wait for the same keys from the beginning of the window on, each until it
// has got its own once.
func (c *client) takeOver() {
	begin := c.phases.windowStart
	if c.holder {
		// The last fifth is for the last to be granted.
		span := float64(c.phases.windowStart-c.start) * 4 / 5
		begin = c.start + int64(span*share(c.spec.Scenario, c.id))
	}
	if !c.sleepUntil(begin) {
		return
	}
	for !c.over() && c.err == nil && !c.round(0) {
	}
}

// isHolder reports whether a client of a takeover keeps its lock until it is killed.
func isHolder(sc scenario.Scenario, client uint32) bool {
	return sc.Workload.Kind == scenario.Takeover && int(client) < sc.Clients/2
}

// share is the holder's place among them all, from 0 to 1.
func share(sc scenario.Scenario, client uint32) float64 {
	jitter := newRand(sc.Seed, client, streamStagger).Float64()
	return (float64(client) + jitter) / float64(sc.Clients/2)
}

// openAfter is how long a client waits before it is opened: nothing, but for a
// holder. What keeps a session alive counts from there; were all opened at
// once, a kill would find every session at the same point between two
// renewals. Those are a third of the TTL apart, or less.
func openAfter(sc scenario.Scenario, client uint32) time.Duration {
	if !isHolder(sc, client) {
		return 0
	}
	return time.Duration(share(sc, client) * float64(sc.TTL) / 3)
}
