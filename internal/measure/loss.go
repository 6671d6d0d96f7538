package measure

import (
	"math"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// lossSignals counts the holders that the lock itself informed of its loss, and
// those that it informed before another client was granted it. A stopped client
// learns it late, and the lock is not to blame; it is to blame if the client
// never learns it.
func (d *derivation) lossSignals() {
	if !d.info.Promises(impls.SignalsLoss) {
		d.unmeasured("loss_signals", "the recipe does not report a lost lock to its client")
		return
	}
	if d.losses == (scenario.LossSignals{}) {
		d.unmeasured("loss_signals", "no client lost a lock that it held")
		return
	}
	d.result.Safety.LossSignals = &d.losses
}

// lossesOf adds the losses of one key's holds, which are in order.
func (d *derivation) lossesOf(holds checker.HoldList, s *scenario.LossSignals) {
	for i := range holds.Len() {
		h := holds.At(i)
		at, knew := d.totals.lostAt[h.Attempt]
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
