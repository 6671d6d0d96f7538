package measure

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// What is told of the time around a violation: how long before it and after it,
// and of how many attempts, those nearest to it.
const (
	aroundWitness  = 2 * time.Second
	aroundAttempts = 12
)

// surround tells of the first violation of each class what else went on around
// it.
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

// surroundings are the calls of the others on a witness's key in the seconds
// before and after the violation: who freed a holder's lock is often none of
// those who held it. They are whole attempts, so that no hold lacks its end
// because that was left out.
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
			if c.Key == w.Key && c.Attempt != (history.Attempt{}) && tells(c) {
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

// tells reports whether a call shows who had the lock, wanted it, or let it go:
// not the refusals and the renewals, of which there may be any number, nor the
// calls on a guarded register.
func tells(c *history.Call) bool {
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
