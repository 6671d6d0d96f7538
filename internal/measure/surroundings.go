package measure

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// How much of the time around a violation is shown: how long before and after
// it, and how many attempts, the nearest ones first.
const (
	aroundWitness  = 2 * time.Second
	aroundAttempts = 12
)

// surround adds the surrounding calls to the first violation of each class.
func (d *derivation) surround(found []checker.Witness) (err error) {
	seen := map[checker.Class]bool{}
	for i, w := range found {
		if !seen[w.Class] {
			seen[w.Class] = true
			if d.result.Safety.Witnesses[i].Around, err = d.surroundings(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// surroundings are the calls of other clients on a witness's key in the seconds
// before and after the violation: often a client that never held the lock freed
// it. They are whole attempts, so that every hold is shown with its end.
func (d *derivation) surroundings(w checker.Witness) ([]scenario.WitnessCall, error) {
	from, to := extent(w)
	type near struct {
		attempt  history.Attempt
		distance int64
	}
	var attempts []near
	at := map[history.Attempt]int{}
	each := func(do func(c *history.Call)) error {
		return d.calls.Key(w.Key, func(c *history.Call) {
			if c.Key == w.Key && c.Attempt != (history.Attempt{}) && relevant(c) {
				do(c)
			}
		})
	}
	err := each(func(c *history.Call) {
		distance := max(0, from-d.ended(c), c.Invoke-to)
		if distance > int64(aroundWitness) {
			return
		}
		if i, ok := at[c.Attempt]; ok {
			attempts[i].distance = min(attempts[i].distance, distance)
			return
		}
		at[c.Attempt] = len(attempts)
		attempts = append(attempts, near{c.Attempt, distance})
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(attempts, func(a, b near) int { return cmp.Compare(a.distance, b.distance) })
	kept := map[history.Attempt]bool{}
	for _, a := range attempts[:min(len(attempts), aroundAttempts)] {
		kept[a.attempt] = true
	}
	for _, c := range w.Calls {
		kept[c.Attempt] = true
	}
	var list []scenario.WitnessCall
	err = each(func(c *history.Call) {
		proof := func(p history.Call) bool { return p.Client == c.Client && p.Seq == c.Seq }
		if kept[c.Attempt] && !slices.ContainsFunc(w.Calls, proof) {
			list = append(list, d.witnessCall(*c))
		}
	})
	slices.SortStableFunc(list, func(a, b scenario.WitnessCall) int { return cmp.Compare(a.InvokeNS, b.InvokeNS) })
	return list, err
}

// extent is the time of a violation itself: where the checker does not bound it,
// from the first answer that proves it to the last.
func extent(w checker.Witness) (from, to int64) {
	if w.From != 0 && w.To >= w.From {
		return w.From, w.To
	}
	for i, c := range w.Calls {
		at := max(c.Invoke, c.Return)
		if i == 0 {
			from, to = at, at
		}
		from, to = min(from, at), max(to, at)
	}
	return from, to
}

// relevant reports whether a call shows which client held the lock, requested it
// or released it: not rejections and extensions, of which there may be any
// number, nor the calls on a guarded register.
func relevant(c *history.Call) bool {
	switch c.Kind {
	case history.KindAcquire, history.KindRelease, history.KindCleanup, history.KindLost:
		return true
	case history.KindTry:
		return c.Outcome != history.Busy
	case history.KindExtend:
		return c.Outcome != history.Extended
	}
	return false
}
