package measure

import (
	"math"

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
	if d.losses == (scenario.LossSignals{}) {
		d.unmeasured("loss_signals", "nobody lost a lock that he held")
		return
	}
	d.result.Safety.LossSignals = &d.losses
}

// lossesOf adds the losses of one key's holds, which are in order.
func (d *derivation) lossesOf(holds checker.HoldList, s *scenario.LossSignals) {
	for i := range holds.Len() {
		h := holds.At(i)
		at, knew := d.totals.told[h.Attempt]
		until := h.End // a later grant took nothing away
		if knew {
			until = math.MaxInt64
		}
		next := nextGrant(holds, i, &h, until)
		switch {
		case knew && (next == nil || at <= next.Start):
			s.InTime++
		case knew:
			s.Late++
			s.WorstLateNS = max(s.WorstLateNS, at-next.Start)
		case next != nil:
			s.Missing++
		}
	}
}

// nextGrant is the first hold that starts after h, the hold i of the list, and
// before until, and that h excludes; nil if there is none.
func nextGrant(holds checker.HoldList, i int, h *checker.Hold, until int64) *checker.Hold {
	for i++; i < holds.Len(); i++ {
		o := holds.At(i)
		if o.Start >= until {
			return nil
		}
		if o.Start > h.Start && o.Client != h.Client && o.Flags&h.Flags&history.FlagShared == 0 {
			return &o
		}
	}
	return nil
}
