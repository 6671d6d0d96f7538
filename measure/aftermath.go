package measure

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/scenario"
)

// aftermath says what the others had of an effective fault.
func (d *derivation) aftermath(f fault, out *scenario.FaultResult) {
	end := f.end()
	calls := d.history.Calls
	var after, others int64
	for i := range calls {
		c := &calls[i]
		if !asks(c) || c.Key != f.key || c.Outcome != history.Held {
			continue
		}
		if _, died := d.dead[c.Client]; f.kills() && died {
			continue
		}
		if c.Return > end && (after == 0 || c.Return < after) {
			after = c.Return
		}
		if c.Client != f.client && c.Return > f.injected && c.Return < f.healing && (others == 0 || c.Return < others) {
			others = c.Return
		}
	}
	if after > 0 {
		out.FirstGrantNS = after - d.samples.Start
	}
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
		if c.Kind != history.KindAcquire || c.Key != f.key || c.Client == f.client {
			continue
		}
		if to := d.ended(c); c.Invoke < end && to > f.injected {
			out.LongestWaitNS = max(out.LongestWaitNS, to-c.Invoke)
		}
	}
}

// ended is when a call was over: at its return, or where it has none at the
// last that is known of its client.
func (d *derivation) ended(c *history.Call) int64 {
	if c.Outcome == history.Open || c.Return < c.Invoke {
		return max(c.Invoke, d.lastStamp(c.Client))
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
			d.unmeasured("recovery_ns", "nobody was granted the key after %s", f.id)
			return
		}
		longest = max(longest, first+d.samples.Start-f.end())
	}
	r.RecoveryNS = ptr(longest)
}

// paused lists when clients were stopped, effective or not: a missed pause
// stopped somebody all the same.
func (d *derivation) paused() []checker.Interval {
	var list []checker.Interval
	for _, f := range d.faults {
		if f.kills() || f.injected == 0 {
			continue
		}
		to := f.end()
		if to == 0 {
			to = d.samples.End
		}
		list = append(list, checker.Interval{Client: f.client, From: f.injected, To: to})
	}
	return list
}

// suspects are the attempts that a fault stopped: holders that outlived their
// leases, and clients that stood at the worst place. A holder of a lock without
// a lease has no such excuse.
func (d *derivation) suspects() []checker.Suspect {
	var list []checker.Suspect
	for _, f := range d.faults {
		switch {
		case !f.effective:
		case f.kind == scenario.HolderPause && d.info.Bound.Leased():
			list = append(list, checker.Suspect{Cause: "lease outlived by a paused holder", Attempt: f.attempt, From: f.injected})
		case f.kind == scenario.StepPause:
			list = append(list, checker.Suspect{Cause: fmt.Sprintf("a client paused at its step %s", f.step), Attempt: f.attempt, From: f.injected})
		}
	}
	return list
}

// deaths tells which clients a fault killed, and when: whoever shared a process
// with its target died with it.
func (d *derivation) deaths() map[uint32]int64 {
	dead := map[uint32]int64{}
	note := func(client uint32, at int64) {
		if before, ok := dead[client]; !ok || at < before {
			dead[client] = at
		}
	}
	for _, e := range d.events {
		if e.Event != "injected" || e.Client == nil || !(fault{kind: e.Fault}).kills() {
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
		return e.Event == "injected" && e.PID == w.PID && (fault{kind: e.Fault}).kills()
	})
}
