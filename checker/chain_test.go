package checker

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
)

// timedFits tries all integer moments at which the grants and releases of a
// lease of ttl may have taken effect.
func timedFits(h *history.History, ttl int64) bool {
	type hold struct{ grant, release *history.Call }
	var holds []hold
	for i := range h.Calls {
		c := &h.Calls[i]
		if c.Kind == history.KindAcquire {
			holds = append(holds, hold{grant: c})
			continue
		}
		for k := range holds {
			if holds[k].grant.Attempt == c.Attempt {
				holds[k].release = c
			}
		}
	}
	from, to := make([]int64, len(holds)), make([]int64, len(holds))
	var place func(k int) bool
	place = func(k int) bool {
		if k == len(holds) {
			return true
		}
		x := holds[k]
		for at := x.grant.Invoke; at <= x.grant.Return; at++ {
			ends := []int64{at + ttl}
			if r := x.release; r != nil {
				ends = nil
				for e := max(at, r.Invoke); e <= r.Return; e++ {
					ends = append(ends, e)
				}
			}
			for _, end := range ends {
				from[k], to[k] = at, end
				apart := true
				for m := range k {
					apart = apart && (to[m] <= at || end <= from[m])
				}
				if apart && place(k+1) {
					return true
				}
			}
		}
		return false
	}
	return place(0)
}

// anyPair reports whether two grants contradict one another by themselves.
func anyPair(h *history.History, ttl int64) bool {
	for i := range h.Calls {
		for k := range i {
			pair := &history.History{}
			for _, c := range h.Calls {
				if c.Attempt == h.Calls[i].Attempt || c.Attempt == h.Calls[k].Attempt {
					pair.Calls = append(pair.Calls, c)
				}
			}
			if !timedFits(pair, ttl) {
				return true
			}
		}
	}
	return false
}

// The chain of leases against all integer moments.
func TestChainAgainstMoments(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(21, 22))
	var good, bad, chained int
	for range rounds(20000) {
		ttl := int64(3 + rng.IntN(4))
		b := newBuilder()
		n := 2 + rng.IntN(3)
		at := int64(10) // stamps are positive: 0 is a moment that is not known
		for k := range n {
			from := at + rng.Int64N(5) - 2
			ret := from + rng.Int64N(ttl)
			b.add(uint32(k), k, history.KindAcquire, history.Held, from, ret)
			at = ret + rng.Int64N(ttl)
			if rng.IntN(4) == 0 {
				sent := ret + 1 + rng.Int64N(3)
				r := b.add(uint32(k), k, history.KindRelease, history.Released, sent, sent+rng.Int64N(3))
				at = r.Return
			}
		}
		h := b.seal(200)
		r, fit := Check(h, Options{Leased: true, TTL: time.Duration(ttl)}), timedFits(h, ttl)
		if fit != (r.BreachTotal() == 0) {
			t.Fatalf("ttl %d: all moments: fits=%v, the rules %v\n%s", ttl, fit, r.Breaches, fixture(h))
		}
		if fit {
			good++
		} else {
			bad++
			if r.Breaches[EarlyExpiry] == 1 && !anyPair(h, ttl) {
				chained++
			}
		}
	}
	if good*5 < bad || bad*20 < good || chained == 0 {
		t.Errorf("%d good, %d bad, %d of them for a chain only: the mix proves little", good, bad, chained)
	}
}
