package checker

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// stretch is a piece of time.
type stretch struct{ from, to int64 }

// union sorts and joins stretches that meet.
func union(pieces []stretch) []stretch {
	slices.SortFunc(pieces, func(a, b stretch) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	joined := pieces[:0]
	for _, p := range pieces {
		if p.to <= p.from {
			continue
		}
		if n := len(joined); n > 0 && p.from <= joined[n-1].to {
			joined[n-1].to = max(joined[n-1].to, p.to)
			continue
		}
		joined = append(joined, p)
	}
	return joined
}

// without is what of the joined stretches a lies outside the joined b.
func without(a, b []stretch) []stretch {
	var rest []stretch
	k := 0
	for _, x := range a {
		for k < len(b) && b[k].to <= x.from {
			k++
		}
		from := x.from
		for i := k; i < len(b) && b[i].from < x.to; i++ {
			if b[i].from > from {
				rest = append(rest, stretch{from, b[i].from})
			}
			from = max(from, b[i].to)
		}
		if from < x.to {
			rest = append(rest, stretch{from, x.to})
		}
	}
	return rest
}

// stuck finds the longest time during which one key was held by nobody, by the
// clients' view, while at every moment some acquire of it was pending. An
// acquire that a dead client left open is pending to that client's last
// record; one of a paused client is not pending during the pause.
func (j *judgement) stuck(key uint32, first, last int32, held []stretch) {
	end := j.opt.End
	if end == 0 {
		end = j.end
	}
	var wanted, again []stretch
	given := map[uint32]*attempt{} // clients' last attempts, where they did not get the lock
	for i := first; i < last; i++ {
		a := &j.attempts[i]
		if a.malformed {
			continue
		}
		c := &j.calls[a.acquire]
		if c.Kind != history.KindAcquire {
			continue
		}
		p := stretch{c.Invoke, min(j.ended(c), end)}
		if before := given[a.client]; before != nil && c.Invoke-before.last <= int64(j.opt.Takeover) {
			again = append(again, stretch{j.ended(&j.calls[before.acquire]), min(c.Invoke, end)})
		}
		given[a.client] = nil
		if !a.granted(j.calls) {
			given[a.client] = a
		}
		if pauses := j.pauses[a.client]; len(pauses) > 0 {
			wanted = append(wanted, without([]stretch{p}, pauses)...)
		} else {
			wanted = append(wanted, p)
		}
	}
	taken := union(held)
	longest := func(kept *StuckPeriod, wanted []stretch) {
		for _, p := range without(union(wanted), taken) {
			if s := (StuckPeriod{Key: key, From: p.from, To: p.to}); s.Length() > kept.Length() {
				*kept = s
			}
		}
	}
	all := slices.Concat(wanted, again)
	longest(&j.rep.Stuck, wanted)
	longest(&j.rep.Vain, all)
}

// stuckWitness shows the acquire that waited longest within the period.
func (j *judgement) stuckWitness() Witness {
	s := j.rep.Stuck
	w := Witness{Class: StuckKey, Key: s.Key, From: s.From, To: s.To}
	var best *history.Call
	var longest int64
	for i := range j.calls {
		c := &j.calls[i]
		if c.Kind != history.KindAcquire || c.Key != s.Key {
			continue
		}
		if waited := min(j.ended(c), s.To) - max(c.Invoke, s.From); waited > longest || waited == longest && best != nil && c.Client < best.Client {
			best, longest = c, waited
		}
	}
	if best != nil {
		w.Calls = append(w.Calls, *best)
	}
	return w
}
