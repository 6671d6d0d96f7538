package workloads

import "github.com/lockbench/lockbench/scenario"

// takeOver is the load of a client whose key is wanted by one other. The first
// half of the clients are holders: each takes its key in the warm-up and keeps
// it until it is killed, at the latest until the load ends. They come spread
// over the warm-up, so that a kill finds leases of every age. The second half
// wait for the same keys from the beginning of the window on, each until it
// has got its own once.
func (c *client) takeOver() {
	begin := c.phases.windowStart
	if c.isHolder() {
		// The last fifth is for the last to be granted.
		span := float64(c.phases.windowStart-c.start) * 4 / 5
		share := (float64(c.id) + c.thinks.Float64()) / float64(c.spec.Scenario.Clients/2)
		begin = c.start + int64(span*share)
	}
	if !c.sleepUntil(begin) {
		return
	}
	for !c.over() && c.err == nil && !c.round(0) {
	}
}

// isHolder tells a client that keeps its lock until it is killed.
func (c *client) isHolder() bool {
	sc := &c.spec.Scenario
	return sc.Workload.Kind == scenario.Takeover && int(c.id) < sc.Clients/2
}
