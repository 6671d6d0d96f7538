package measure

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// faultEffects derives the effects of an effective fault on the other clients: for
// a fault on a client on its key only, for a fault on servers on every key.
func (d *derivation) faultEffects(f fault, out *scenario.FaultResult) {
	end := f.end()
	calls := d.history.Calls
	touched := func(c *history.Call) bool { return asks(c) && (!f.keyed || c.Key == f.key) }
	earliest := func(old, at int64) int64 {
		if old == 0 || at < old {
			return at
		}
		return old
	}
	var after, others int64
	var grants []int64
	for i := range calls {
		c := &calls[i]
		if !touched(c) || c.Outcome != history.Held {
			continue
		}
		if _, died := d.dead[c.Client]; f.kills() && died {
			continue
		}
		if c.Return > end {
			after = earliest(after, c.Return)
		}
		grants = append(grants, c.Return)
		if f.aimed && c.Client != f.client && c.Return > f.injected && c.Return < f.healing {
			others = earliest(others, c.Return)
		}
	}
	if after > 0 {
		out.FirstGrantNS = after - d.samples.Start
		out.RecoveryNS = after - end
	}
	out.OutageNS = outage(grants, f.injected, end, d.samples.End)
	if others > 0 {
		out.OthersGrantedNS = others - d.samples.Start
	}
	// Of a kill the others feel something until the key is granted again.
	if f.kills() {
		end = after
		if end == 0 {
			end = d.samples.End
		}
	}
	for i := range calls {
		c := &calls[i]
		if c.Kind != history.KindAcquire || !touched(c) || f.aimed && c.Client == f.client || d.delayed(c) {
			continue
		}
		if to := d.ended(c); c.Invoke < end && to > f.injected {
			out.LongestWaitNS = max(out.LongestWaitNS, to-c.Invoke)
		}
	}
}

// delayed reports whether a fault on its own client delayed a call: a stopped
// client does not wait for another.
func (d *derivation) delayed(c *history.Call) bool {
	return slices.ContainsFunc(d.faults, func(f fault) bool {
		return f.what.OnClient() && f.aimed && f.client == c.Client && c.Invoke < f.end() && d.ended(c) > f.injected
	})
}

// outage is the longest time without a grant that overlaps a fault from injected
// to end. If it began before the fault, it counts from the injection.
func outage(grants []int64, injected, end, last int64) int64 {
	slices.Sort(grants)
	var longest int64
	from := injected
	for _, at := range append(grants, last) {
		if at <= injected {
			continue
		}
		longest = max(longest, at-from)
		if from = at; at > end {
			break
		}
	}
	return longest
}

// ended is when a call was over: at its return, or where it has none at the
// last that is known of its client.
func (d *derivation) ended(c *history.Call) int64 {
	if c.Outcome == history.Open || c.Return < c.Invoke {
		return max(c.Invoke, d.last[c.Client])
	}
	return c.Return
}

// recovery is the longest time from a fault's end to the next grant of its key.
func (d *derivation) recovery() {
	r := &d.result
	if len(d.faults) == 0 {
		d.unmeasured("recovery_ns", "there was no fault")
		return
	}
	var longest int64
	for i, f := range d.faults {
		if !f.effective {
			d.unmeasured("recovery_ns", "the fault %s missed", f.id)
			return
		}
		first := r.Faults[i].FirstGrantNS
		if first == 0 {
			d.unmeasured("recovery_ns", "no client was granted the key after %s", f.id)
			return
		}
		longest = max(longest, first+d.samples.Start-f.end())
	}
	r.RecoveryNS = ptr(longest)
}

// deaths returns the clients that a fault killed, and when: all clients in the
// process of its target died with it.
func (d *derivation) deaths() map[uint32]int64 {
	dead := map[uint32]int64{}
	note := func(client uint32, at int64) {
		if before, ok := dead[client]; !ok || at < before {
			dead[client] = at
		}
	}
	for _, e := range d.events {
		what, _ := chaos.ParseKind(e.Fault)
		// A client that is cut off first is dead only when that is confirmed.
		event := "injected"
		if diesLater(what) {
			event = "effective"
		}
		if e.Event != event || e.Client == nil || !what.KillsClient() {
			continue
		}
		note(*e.Client, e.AtNS)
		for _, other := range d.neighbours(*e.Client) {
			note(other, e.AtNS)
		}
	}
	return dead
}

// deathList is the same as the checker wants it, by client.
func (d *derivation) deathList() []checker.Death {
	var list []checker.Death
	for client, at := range d.dead {
		list = append(list, checker.Death{Client: client, At: at})
	}
	slices.SortFunc(list, func(a, b checker.Death) int { return cmp.Compare(a.Client, b.Client) })
	return list
}

// killed reports whether a fault ended a worker on purpose.
func (d *derivation) killed(w scenario.WorkerSample) bool {
	return slices.ContainsFunc(d.events, func(e scenario.FaultEvent) bool {
		what, _ := chaos.ParseKind(e.Fault)
		return e.Event == "injected" && e.PID == w.PID && what.KillsClient()
	})
}
