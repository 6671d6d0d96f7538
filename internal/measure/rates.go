package measure

import (
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// rates derives the counts: grants, their spread over time and clients, and the
// time without any.
func (d *derivation) rates() {
	r, t := &d.result, d.totals
	length := d.samples.End - d.samples.Start
	r.PerSecond, r.Acquired, r.Busy, r.Failed = t.perSecond, t.acquired, t.busy, t.failed
	for attempt, stays := range t.open {
		switch {
		case stays:
			r.Unknown++
		case t.doubted[attempt]:
			r.Settled++
		}
	}
	switch {
	case length <= 0:
		d.unmeasured("throughput_per_s", "the measured window has no length")
		d.unmeasured("tries_per_s", "the measured window has no length")
	case t.tries == 0:
		r.Throughput = ptr(perSecond(r.Acquired, length))
		d.unmeasured("tries_per_s", "the load makes no tries")
	default:
		r.Throughput, r.TriesPerSecond = ptr(perSecond(r.Acquired, length)), ptr(perSecond(t.tries, length))
	}
	d.fairness(t.perClient)
	d.unavailable()
	d.arrivals()
}

func perSecond(n, ns int64) float64 { return float64(n) / time.Duration(ns).Seconds() }

// follow tracks which attempts of the window are in doubt: an answered clean-up
// or release ends the doubt about the calls before it.
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
			why = "no client acquired a lock within the window"
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
		least = r.Acquired // every client acquired it
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
// at every moment a client waited for one.
func (d *derivation) unavailable() {
	free := &d.totals.free
	free.finish()
	if free.from == 0 {
		d.unmeasured("unavailable_ns", "no client requested the lock within the window")
		return
	}
	d.result.UnavailableNS = ptr(free.longest)
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
	if begun := d.totals.begun; d.incomplete() == "" && len(d.history.Damage) == 0 && (begun < a.Completed || begun > a.Completed+a.InFlight) {
		d.warning("the arrivals do not fit the history: %d completed and %d in flight, but %d acquires on record", a.Completed, a.InFlight, begun)
	}
	if a.Dropped > 0 {
		d.result.Response = nil
		d.unmeasured("response_ns", "%d of %d arrivals were dropped: the load is above the capacity, so response times have no steady state", a.Dropped, a.Arrived)
		d.warning("%d of %d arrivals were dropped: the load is above the capacity, and response times have no steady state", a.Dropped, a.Arrived)
	}
}
