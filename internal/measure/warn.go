package measure

import (
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Beyond these a number depends more on the machine than on the lock.
const (
	saturatedShare  = 0.75 // of the machine's CPU, used by the workers alone
	busyShare       = 0.9  // of the machine's CPU, used by all
	othersShare     = 0.1  // of it, used by others while the machine is busy
	othersAlone     = 0.5  // of it, used by others
	pacerLate       = 5 * time.Millisecond
	clockTooCoarse  = 50 * time.Microsecond
	fewForP99       = 100
	fewForThousands = 1000
)

// counted is a number with its noun.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// warn notes what a reader of the numbers must know.
func (d *derivation) warn() {
	r := &d.result
	if n := d.samples.End - d.samples.Start; n > 0 && d.cpus > 0 {
		if share := float64(d.workerCPU()) / float64(n) / float64(d.cpus); share > saturatedShare {
			d.warning(scenario.WarnSaturated+": the workers used %.0f %% of the machine's %d CPUs, so the numbers may be theirs and not the lock's", 100*share, d.cpus)
		}
	}
	switch all, others := d.samples.BusyCPU, d.samples.OthersCPU; {
	case all == nil:
	case others == nil && *all > busyShare:
		d.warning(scenario.WarnBusy+": %.0f %% of its CPU time was used", 100**all)
	case others != nil && (*others > othersAlone || *all > busyShare && *others > othersShare):
		d.warning(scenario.WarnBusy+": %.0f %% of its CPU time was used, %.0f %% by processes outside of this run", 100**all, 100**others)
	}
	if a := r.Arrivals; a != nil && a.PacerLateNS > int64(pacerLate) {
		d.warning("pacer late: one arrival in a hundred began more than %s after its time", length(a.PacerLateNS))
	}
	if u := d.samples.ClockUncertaintyNS; u > int64(clockTooCoarse) {
		d.warning("clocks uncertain: stamps of two processes may be off by %s", length(2*u))
	}
	switch {
	case r.Acquired > 0 && r.Acquired < fewForP99:
		d.warning("few samples: %d acquires; percentiles from the 99th on are the largest value", r.Acquired)
	case r.Acquired > 0 && r.Acquired < fewForThousands:
		d.warning("few samples: %d acquires; the 99.9th percentile is the largest value", r.Acquired)
	}
	if why := d.scenario.OutlivesLease(r.Bound); why != "" {
		d.warning("%s, so two clients can hold the lock at once without any fault", why)
	}
	for _, w := range d.samples.Workers {
		if w.Error != "" && !d.killed(w) {
			d.warning("the worker with pid %d did not come to its end: %s", w.PID, w.Error)
		}
	}
	if n := len(d.history.Damage); n > 0 {
		d.warning("the history is damaged in %s; first: %s", counted(n, "place", "places"), d.history.Damage[0])
	}
}
