package measure

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// lossSignals tells whether holders learned from the lock itself that they had
// lost it, and whether they did before somebody else was granted it. A client
// that was stopped learns it late, by no fault of the lock's; that it never
// does would be one.
func (d *derivation) lossSignals() {
	if !d.info.Promises(impls.SignalsLoss) {
		d.unmeasured("loss_signals", "the recipe tells nobody that the lock is lost")
		return
	}
	told := map[history.Attempt]int64{}
	shared := map[history.Attempt]bool{}
	for i := range d.history.Calls {
		c := &d.history.Calls[i]
		if c.Kind == history.KindLost && c.Flags&history.FlagLeaseTimer == 0 {
			if at, ok := told[c.Attempt]; !ok || c.Invoke < at {
				told[c.Attempt] = c.Invoke
			}
		}
		if c.Flags&history.FlagShared != 0 {
			shared[c.Attempt] = true
		}
	}
	var s scenario.LossSignals
	holds := checker.Holds(d.history) // by key and start
	for len(holds) > 0 {
		n := 1
		for n < len(holds) && holds[n].Key == holds[0].Key {
			n++
		}
		for i := range holds[:n] {
			h := &holds[i]
			at, knew := told[h.Attempt]
			next := nextGrant(holds[i+1:n], h, shared)
			switch {
			case knew && (next == nil || at <= next.Start):
				s.InTime++
			case knew:
				s.Late++
				s.WorstLateNS = max(s.WorstLateNS, at-next.Start)
			case next != nil && next.Start < h.End:
				s.Missing++
			}
		}
		holds = holds[n:]
	}
	if s == (scenario.LossSignals{}) {
		d.unmeasured("loss_signals", "nobody lost a lock that he held")
		return
	}
	d.result.Safety.LossSignals = &s
}

// nextGrant is the first of the later holds that h excludes, nil if there is
// none.
func nextGrant(later []checker.Hold, h *checker.Hold, shared map[history.Attempt]bool) *checker.Hold {
	from, _ := slices.BinarySearchFunc(later, h.Start, func(o checker.Hold, at int64) int { return cmp.Compare(o.Start, at+1) })
	for i := from; i < len(later); i++ {
		if o := &later[i]; o.Client != h.Client && !(shared[o.Attempt] && shared[h.Attempt]) {
			return o
		}
	}
	return nil
}
