package measure

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/scenario"
)

// holderPause is the fault that stops the process of the lock's holder.
const holderPause = "holder-pause"

// fault is one fault of the schedule, from its events.
type fault struct {
	id        string
	kind      string
	effective bool
	client    uint32
	key       uint32
	attempt   history.Attempt
	injected  int64 // stamps; 0: it did not come to that
	healing   int64
	healed    int64
}

// end is when the fault was over: at the latest stamp that is known of it.
func (f fault) end() int64 { return max(f.healing, f.healed) }

// findFaults holds each fault of the schedule against the history. Effective is
// only what the history shows to have hit a holder from before it was injected
// until after it was lifted; whatever else the fault log may say.
func (d *derivation) findFaults() {
	// Faults are numbered in the order of their times.
	schedule := slices.Clone(d.scenario.Faults)
	slices.SortStableFunc(schedule, func(a, b scenario.Fault) int { return cmp.Compare(a.At, b.At) })
	for i, planned := range schedule {
		f := fault{id: planned.Kind + "-" + strconv.Itoa(i+1), kind: planned.Kind}
		out := scenario.FaultResult{ID: f.id, Kind: f.kind, Status: "missed"}
		out.Reason = d.follows(planned, &f, &out)
		if out.Reason == "" {
			f.effective = true
			out.Status = "effective"
			d.aftermath(f, &out)
		} else {
			d.missed = append(d.missed, fmt.Sprintf("%s: %s", f.id, out.Reason))
		}
		d.faults = append(d.faults, f)
		d.result.Faults = append(d.result.Faults, out)
	}
	d.recovery()
}

// follows reads a fault's events into f and out, and returns why it missed, or
// "".
func (d *derivation) follows(planned scenario.Fault, f *fault, out *scenario.FaultResult) string {
	armed, missed := false, ""
	identified := false
	for _, e := range d.events {
		if e.ID != f.id {
			continue
		}
		at := e.AtNS - d.samples.Start
		switch e.Event {
		case "armed":
			armed, out.ArmedNS = true, at
		case "injected":
			f.injected, out.InjectedNS, out.Mechanism = e.AtNS, at, mechanism(e.How)
			if e.Client == nil || e.Key == nil {
				continue
			}
			a, err := history.ParseAttempt(e.Attempt)
			if err != nil {
				continue
			}
			identified = true
			f.client, f.key, f.attempt = *e.Client, *e.Key, a
			out.Target = fmt.Sprintf("client %d (pid %d)", *e.Client, e.PID)
		case "heal_started":
			f.healing = e.AtNS
		case "healed":
			f.healed, out.HealedNS = e.AtNS, at
		case "missed":
			missed = e.Reason
			if missed == "" {
				missed = "it found no target"
			}
		}
	}
	switch {
	case missed != "":
		return missed
	case !armed && f.injected == 0:
		return "it was never armed: the run ended before its time"
	case f.injected == 0:
		return "it was armed but never injected: the run ended before its time"
	case !identified:
		return "the fault log does not say whom it hit"
	case f.healing == 0:
		return "the fault log does not say when it was lifted"
	}
	if lasted := f.healing - f.injected; lasted < int64(planned.For) {
		return fmt.Sprintf("it was lifted after %s, planned were %s", length(lasted), planned.For)
	}
	if other, ok := d.neighbour(f.client); ok {
		return fmt.Sprintf("its process hosted client %d as well, who was stopped too", other)
	}
	// Stamps of two processes are only as good as their clocks.
	doubt := 2 * d.samples.ClockUncertaintyNS
	for _, h := range d.holds {
		if h.Attempt != f.attempt || h.Key != f.key || h.Client != f.client {
			continue
		}
		switch {
		case h.Start >= f.injected:
			return fmt.Sprintf("client %d had not got the lock yet: the grant came %s after the fault", f.client, length(h.Start-f.injected))
		case h.Start+doubt >= f.injected:
			return fmt.Sprintf("the clocks leave open whether client %d had got the lock before the fault", f.client)
		case h.End > f.healing && h.End-doubt <= f.healing:
			return fmt.Sprintf("the clocks leave open whether client %d still held the lock when the fault was lifted", f.client)
		case h.End <= f.healing:
			return fmt.Sprintf("client %d held the lock until %s before the fault was lifted, not through it", f.client, length(f.healing-h.End))
		}
		return ""
	}
	return fmt.Sprintf("the history shows no hold of client %d under that attempt", f.client)
}

// neighbour finds another client in the process of a client.
func (d *derivation) neighbour(client uint32) (uint32, bool) {
	i := slices.IndexFunc(d.history.Streams, func(s history.Stream) bool { return s.Client == client })
	if i < 0 {
		return 0, false
	}
	worker := d.history.Streams[i].Worker
	for _, s := range d.history.Streams {
		if s.Client != client && s.Client != history.Controller && s.Worker == worker {
			return s.Client, true
		}
	}
	return 0, false
}

// mechanism is the first part of how a fault was injected.
func mechanism(how string) string {
	first, _, _ := strings.Cut(how, ";")
	return first
}

// aftermath says what the others had of an effective fault.
func (d *derivation) aftermath(f fault, out *scenario.FaultResult) {
	end := f.end()
	calls := d.history.Calls
	var after, others int64
	for i := range calls {
		c := &calls[i]
		if !asks(c) || c.Key != f.key {
			continue
		}
		to := c.Return
		if c.Outcome == history.Open || to < c.Invoke {
			to = max(c.Invoke, d.lastStamp(c.Client))
		}
		if c.Client != f.client && c.Kind == history.KindAcquire && c.Invoke < end && to > f.injected {
			out.LongestWaitNS = max(out.LongestWaitNS, to-c.Invoke)
		}
		if c.Outcome != history.Held {
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
		if f.kind == holderPause && f.injected > 0 {
			to := f.end()
			if to == 0 {
				to = d.samples.End
			}
			list = append(list, checker.Interval{Client: f.client, From: f.injected, To: to})
		}
	}
	return list
}

// suspects are the holders that outlived their leases. A lock without a lease
// has no such excuse.
func (d *derivation) suspects() []checker.Suspect {
	var list []checker.Suspect
	for _, f := range d.faults {
		if f.kind == holderPause && f.effective && d.info.Bound.Leased() {
			list = append(list, checker.Suspect{Cause: "lease outlived by a paused holder", Attempt: f.attempt, From: f.injected})
		}
	}
	return list
}
