package measure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
)

// paused lists when clients could not get anything done, effective or not: a
// missed pause stopped a client all the same. One that was cut off needs a
// request's time more to notice that it is so no longer.
func (d *derivation) paused() []checker.Interval {
	var list []checker.Interval
	for _, f := range d.faults {
		if f.kills() || f.injected == 0 || !f.what.OnClient() || f.what.About().KeepsServing {
			continue
		}
		to := d.lasted(f)
		if f.what.About().Wire {
			to += int64(d.scenario.Timeout)
		}
		list = append(list, checker.Interval{Client: f.client, From: f.injected, To: to})
	}
	for _, x := range d.exceptions() {
		if x.bounded {
			continue // its time is taken off, see boundedExceptions
		}
		for _, s := range d.history.Streams {
			if s.Client != history.Controller {
				list = append(list, checker.Interval{Client: s.Client, From: x.from, To: x.to})
			}
		}
	}
	for _, w := range d.samples.Workers {
		for _, x := range w.Stalls {
			for _, client := range w.Clients {
				list = append(list, checker.Interval{Client: client, From: x.From, To: x.To})
			}
		}
	}
	return list
}

// boundedExceptions lists when faults that left servers enough to go on permit that no client is
// granted a lock.
func (d *derivation) boundedExceptions() (list []checker.Interval) {
	for _, x := range d.exceptions() {
		if x.bounded {
			list = append(list, checker.Interval{From: x.from, To: x.to})
		}
	}
	return list
}

// longestStall is the longest time in which the machine, and no fault, kept a
// worker from running.
func (d *derivation) longestStall() (longest int64) {
	for _, w := range d.samples.Workers {
		for _, x := range w.Stalls {
			byFault := slices.ContainsFunc(d.faults, func(f fault) bool {
				return f.injected != 0 && f.what.OnClient() && slices.Contains(w.Clients, f.client) && f.injected < x.To && x.From < d.lasted(f)
			})
			if !byFault {
				longest = max(longest, x.To-x.From)
			}
		}
	}
	return longest
}

// lasted is until when a fault was in force: one that was never lifted to the
// end.
func (d *derivation) lasted(f fault) int64 {
	if f.healing == 0 && !f.what.Instant() {
		return d.samples.End
	}
	return f.end()
}

// livenessException is a time in which a fault on servers permits that no client
// is granted a lock.
type livenessException struct {
	fault    fault
	from, to int64
	over     int64 // when the fault was, without the request's time after it
	bounded  bool  // it ends at the latest when rest is over
	rest     rest
}

// exceptions lists them, in the order of the faults.
func (d *derivation) exceptions() []livenessException {
	var list []livenessException
	for _, f := range d.faults {
		if f.what.OnClient() || f.injected == 0 || f.what.About().KeepsServing {
			continue
		}
		// Clients need a request's time to notice that servers are back.
		x := livenessException{fault: f, from: f.injected, over: d.lasted(f)}
		if f.what.Instant() && f.healing == 0 { // it was done between the two stamps
			x.over = max(x.over, f.confirmed)
		}
		x.to = x.over + int64(d.scenario.Timeout)
		if x.rest, x.bounded = d.recovers(f); !x.bounded {
			list = append(list, x)
			continue
		}
		last := x.to
		for _, at := range f.hits() {
			x.from, x.to = at, min(last, at+int64(x.rest.within()))
			list = append(list, x)
		}
	}
	return list
}

// leftOut describes which times liveness leaves out for faults on servers and for
// a machine that stalled, and why; "" if none.
func (d *derivation) leftOut() string {
	var b strings.Builder
	var away, most []livenessException // most: of each kind of fault, the one that is left out longest
	for _, x := range d.exceptions() {
		i := slices.IndexFunc(most, func(m livenessException) bool { return m.fault.what == x.fault.what })
		switch {
		case !x.bounded:
			away = append(away, x)
		case i < 0:
			most = append(most, x)
		case x.rest.within() > most[i].rest.within():
			most[i] = x
		}
	}
	for _, x := range most {
		fmt.Fprintf(&b, "; %s left servers enough to go on, so of it no more is left out than %s: %s", x.fault.what, length(int64(x.rest.within())), x.rest)
	}
	slices.SortFunc(away, func(a, b livenessException) int { return cmp.Compare(a.from, b.from) })
	var sum, until int64
	for _, x := range away { // which may overlap
		sum += max(0, x.over-max(x.from, until))
		until = max(until, x.over)
	}
	if sum > 0 {
		fmt.Fprintf(&b, "; %s in which faults hit servers, and a request's time after that, are left out", length(sum))
	}
	if longest := d.longestStall(); longest > 0 {
		fmt.Fprintf(&b, "; times in which the machine kept workers from running, up to %s, are left out", length(longest))
	}
	return b.String()
}

// blamed names the faults on servers that a lock did not recover from in time:
// the faults whose exception had ended when the key was stuck.
func (d *derivation) blamed(stuck checker.StuckPeriod) string {
	var b strings.Builder
	last := ""
	for _, x := range d.exceptions() {
		if !x.bounded || x.fault.id == last || x.from >= stuck.To || max(x.to, x.over) < stuck.From {
			continue
		}
		last = x.fault.id
		fmt.Fprintf(&b, "; it did not recover from %s, which hit %s at %s, though it left servers enough", x.fault.id, x.fault.target(), d.when(x.from))
	}
	return b.String()
}

// hits are when servers were hit: once, or one after another.
func (f fault) hits() []int64 {
	if len(f.rounds) > 0 {
		return f.rounds
	}
	return []int64{f.injected}
}
