package checker

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// stretch is an interval of time.
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

// without returns the parts of the joined stretches a outside the joined b.
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

// stuck finds the longest time during which no client held the key, in the
// clients' view, while at every moment some acquire of it was pending. An acquire
// that a dead client left open is pending until that client's last record; a
// paused client wants nothing during the pause. A period goes on through the liveness
// exceptions, which are taken off its length. But if a client was killed they end it:
// what that client left may need its whole bound again after each fault. The key was
// held at the least during least.
func (p *part) stuck(held, least []stretch) {
	end := p.opt.End
	if end == 0 {
		end = p.end
	}
	var wanted, again []stretch
	awake := func(list []stretch, client uint32, x stretch) []stretch {
		pieces := []stretch{x}
		if pauses := p.pauses[client]; len(pauses) > 0 {
			pieces = without(pieces, pauses)
		}
		if len(p.opt.Died) > 0 {
			pieces = without(pieces, p.exceptions)
		}
		return append(list, pieces...)
	}
	gaveUp := map[uint32]*attempt{} // the clients' last attempts, if they did not get the lock
	for i := range p.attempts {
		a := &p.attempts[i]
		c := &p.calls[a.acquire]
		if c.Kind != history.KindAcquire {
			continue
		}
		if before := gaveUp[p.client(a)]; before != nil && c.Invoke-p.stamp(before.last) <= int64(p.opt.Takeover) {
			again = awake(again, c.Client, stretch{p.ended(&p.calls[before.acquire]), min(c.Invoke, end)})
		}
		gaveUp[p.client(a)] = nil
		if !a.granted(p.calls) {
			gaveUp[p.client(a)] = a
		}
		wanted = awake(wanted, c.Client, stretch{c.Invoke, min(p.ended(c), end)})
	}
	all := slices.Concat(wanted, again)
	wanted = union(wanted)
	p.rep.Stuck = p.longest(wanted, held, p.exceptions)
	p.rep.UnservedWait = p.longest(union(all), held, p.exceptions)
	if len(least) < len(held) {
		p.rep.EndlessHold = p.longest(wanted, least, p.exceptions)
	}
	if p.opt.Takeover > 0 && p.rep.Stuck.Length() > int64(p.opt.Takeover) {
		p.keepStuck(StuckKey, p.rep.Stuck)
	}
	if p.opt.Handoff > 0 {
		p.handoff(wanted, held)
	}
}

// longest is the longest time, less the exceptions, that the key was wanted and not
// held. The wanted stretches are joined.
func (p *part) longest(wanted, held, exceptions []stretch) (kept StuckPeriod) {
	for _, x := range without(wanted, union(slices.Clone(held))) {
		s := StuckPeriod{Key: p.key, From: x.from, To: x.to, Exceptions: x.to - x.from}
		for _, rest := range without([]stretch{x}, exceptions) {
			s.Exceptions -= rest.to - rest.from
		}
		if s.Length() > kept.Length() {
			kept = s
		}
	}
	return kept
}

// keepStuck keeps the acquire that waited longest within the period, and the
// attempt that may have left the key taken.
func (p *part) keepStuck(class Class, s StuckPeriod) {
	best := none
	var longest int64
	for i := range p.attempts {
		a := &p.attempts[i]
		if p.calls[a.acquire].Kind != history.KindAcquire {
			continue
		}
		c := &p.calls[a.acquire]
		waited := min(p.ended(c), s.To) - max(c.Invoke, s.From)
		if waited > longest || waited == longest && best != none && c.Client < p.calls[best].Client {
			best, longest = a.acquire, waited
		}
	}
	calls := []int32{best}
	if a := p.leftTaken(s, best); a != nil {
		calls = append(calls, a.acquire)
		if a.firstRelease != none {
			calls = append(calls, a.firstRelease)
		}
	}
	p.keep(Witness{Class: class, Key: p.key, From: s.From, To: s.To, Count: s.Exceptions}, calls...)
}

// leftTaken finds the attempt that may have left the key taken, or nil. Among the
// last holder and the unknown acquires, if not known to be released, it is the
// one that its client finished with nearest to the period's beginning; otherwise
// the last holder. An earlier hold that another followed is over, whatever its
// release returned; but an unanswered acquire may have a place in a queue, and
// get the lock after others.
func (p *part) leftTaken(s StuckPeriod, waiter int32) *attempt {
	var last *attempt
	var lastHold Hold
	for i := range p.attempts {
		if a := &p.attempts[i]; a.held(p.calls) {
			if h := p.hold(a); h.Start <= s.From && (last == nil || h.Start > lastHold.Start) {
				last, lastHold = a, h
			}
		}
	}
	best, nearest := last, int64(forever)
	for i := range p.attempts {
		a := &p.attempts[i]
		c := &p.calls[a.acquire]
		pending := a.unknown(p.calls) && a.acquire != waiter && p.ended(c) < s.To
		if a.over != none || a.gone != none || a != last && !pending {
			continue
		}
		done := p.ended(c)
		if a == last {
			done = lastHold.End
		}
		if distance := max(done-s.From, s.From-done); distance < nearest {
			best, nearest = a, distance
		}
	}
	return best
}
