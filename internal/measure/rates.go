package measure

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// rates derives what is counted: grants, their spread over time and clients,
// and the time without any.
func (d *derivation) rates() {
	r := &d.result
	length := d.samples.End - d.samples.Start
	r.PerSecond = make([]int64, (length+int64(time.Second)-1)/int64(time.Second))
	perClient := map[uint32]int64{}
	open := map[history.Attempt]bool{} // attempts whose last word is unknown
	vain := map[history.Attempt]bool{} // those whose acquire was in doubt
	var tries int64
	calls := d.history.Calls
	for i := range calls {
		c := &calls[i]
		d.follow(open, c)
		if !asks(c) {
			continue
		}
		// When somebody got the lock counts here, however long ago he asked: who
		// waited through the warm-up's end has it like anybody else.
		if c.Outcome == history.Held && d.within(c.Return) {
			r.PerSecond[(c.Return-d.samples.Start)/int64(time.Second)]++
		}
		if !d.measured(c) {
			continue
		}
		if c.Outcome == history.Unknown {
			vain[c.Attempt] = true
		}
		if c.Kind == history.KindTry && (c.Outcome == history.Held || c.Outcome == history.Busy) {
			tries++
		}
		switch c.Outcome {
		case history.Held:
			r.Acquired++
			perClient[c.Client]++
		case history.Busy:
			r.Busy++
			r.Failed++
		case history.Failed:
			r.Failed++
		}
	}
	for attempt, stays := range open {
		switch {
		case stays:
			r.Unknown++
		case vain[attempt]:
			r.Settled++
		}
	}
	switch {
	case length <= 0:
		d.unmeasured("throughput_per_s", "the measured window has no length")
		d.unmeasured("tries_per_s", "the measured window has no length")
	case tries == 0:
		r.Throughput = ptr(perSecond(r.Acquired, length))
		d.unmeasured("tries_per_s", "the load makes no tries")
	default:
		r.Throughput, r.TriesPerSecond = ptr(perSecond(r.Acquired, length)), ptr(perSecond(tries, length))
	}
	d.fairness(perClient)
	d.unavailable()
	d.arrivals()
}

func perSecond(n, ns int64) float64 { return float64(n) / time.Duration(ns).Seconds() }

// follow keeps which attempts of the window are in doubt: a clean-up or
// release that was answered ends the doubt of what came before it.
func (d *derivation) follow(open map[history.Attempt]bool, c *history.Call) {
	switch c.Kind {
	case history.KindAcquire, history.KindTry, history.KindRelease, history.KindCleanup, history.KindExtend:
	default:
		return
	}
	_, known := open[c.Attempt]
	switch {
	case c.Outcome == history.Unknown || c.Outcome == history.Open:
		if known || c.Flags&(history.FlagWarmup|history.FlagDrain) == 0 {
			open[c.Attempt] = true
		}
	case known && (c.Kind == history.KindRelease || c.Kind == history.KindCleanup) && c.Outcome != history.Failed:
		open[c.Attempt] = false
	}
}

func (d *derivation) fairness(perClient map[uint32]int64) {
	r := &d.result
	if r.Acquired == 0 || d.scenario.Clients < 2 {
		why := "one client alone is neither fair nor unfair"
		if r.Acquired == 0 {
			why = "nobody acquired anything within the window"
		}
		for _, field := range []string{"fairness_jain", "acquired_per_client_min", "acquired_per_client_max"} {
			d.unmeasured(field, "%s", why)
		}
		return
	}
	n := float64(d.scenario.Clients)
	var sum, squares float64
	var least, most int64
	if len(perClient) >= d.scenario.Clients {
		least = r.Acquired // nobody went without
	}
	for _, x := range perClient {
		sum += float64(x)
		squares += float64(x) * float64(x)
		least, most = min(least, x), max(most, x)
	}
	r.FairnessJain = ptr(sum * sum / (n * squares))
	r.PerClientMin, r.PerClientMax = ptr(least), ptr(most)
}

// unavailable is the longest time within the window without any grant, while
// at every moment somebody waited for one.
func (d *derivation) unavailable() {
	type stretch struct{ from, to int64 }
	start, end := d.samples.Start, d.samples.End
	var wanted []stretch
	var grants []int64
	calls := d.history.Calls
	for i := range calls {
		c := &calls[i]
		if !asks(c) {
			continue
		}
		p := stretch{max(c.Invoke, start), min(d.ended(c), end)}
		if p.to > p.from {
			wanted = append(wanted, p)
		}
		if c.Outcome == history.Held {
			grants = append(grants, c.Return)
		}
	}
	if len(wanted) == 0 {
		d.unmeasured("unavailable_ns", "nobody wanted the lock within the window")
		return
	}
	slices.Sort(grants)
	slices.SortFunc(wanted, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	var longest int64
	next := 0
	// since is when the present wait began: with the want, or the last grant.
	flush := func(s stretch) {
		since := s.from
		for next < len(grants) && grants[next] <= s.to {
			if grants[next] >= since {
				longest = max(longest, grants[next]-since)
				since = grants[next]
			}
			next++
		}
		longest = max(longest, s.to-since)
	}
	now := wanted[0]
	for _, p := range wanted[1:] {
		if p.from <= now.to {
			now.to = max(now.to, p.to)
			continue
		}
		flush(now)
		now = p
	}
	flush(now)
	d.result.UnavailableNS = ptr(longest)
}

// lastStamp is the last that is known of a client.
func (d *derivation) lastStamp(client uint32) int64 {
	if d.last == nil {
		d.last = map[uint32]int64{}
		for i := range d.history.Calls {
			c := &d.history.Calls[i]
			d.last[c.Client] = max(d.last[c.Client], c.Invoke, c.Return)
		}
		for _, s := range d.history.Streams {
			if s.Sealed {
				d.last[s.Client] = max(d.last[s.Client], s.SealedAt)
			}
		}
	}
	return d.last[client]
}

// arrivals adds up the books of an open loop.
func (d *derivation) arrivals() {
	if !d.openLoop() {
		d.unmeasured("arrivals", "the load is a closed loop: clients ask when they are done")
		return
	}
	if !d.sampled {
		d.unmeasured("arrivals", "%s", d.died)
		return
	}
	a := &scenario.Arrivals{}
	for _, w := range d.samples.Workers {
		a.Arrived += w.Arrived
		a.Completed += w.Completed
		a.Dropped += w.Dropped
		a.InFlight += w.InFlight
		a.PacerLateNS = max(a.PacerLateNS, w.PacerLateP99NS)
	}
	d.result.Arrivals = a
	if a.Arrived != a.Completed+a.Dropped+a.InFlight {
		d.warning("the arrivals do not add up: %d arrived, %d completed, %d dropped, %d in flight", a.Arrived, a.Completed, a.Dropped, a.InFlight)
	}
	// Each arrival that its client began is an acquire on record, and those
	// that were completed have begun.
	if begun := d.begun(); d.incomplete() == "" && len(d.history.Damage) == 0 && (begun < a.Completed || begun > a.Completed+a.InFlight) {
		d.warning("the arrivals do not fit the history: %d completed and %d in flight, but %d acquires on record", a.Completed, a.InFlight, begun)
	}
	if a.Dropped > 0 {
		d.result.Response = nil
		d.unmeasured("response_ns", "%d of %d arrivals were dropped: the load is above the capacity, so response times have no steady state", a.Dropped, a.Arrived)
		d.warning("%d of %d arrivals were dropped: the load is above the capacity, and response times have no steady state", a.Dropped, a.Arrived)
	}
}

// begun counts the acquires of arrivals that were due within the window.
func (d *derivation) begun() int64 {
	var n int64
	for i := range d.history.Calls {
		if c := &d.history.Calls[i]; asks(c) && c.Intended >= d.samples.Start {
			n++
		}
	}
	return n
}
