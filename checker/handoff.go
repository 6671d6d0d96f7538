package checker

import (
	"math"
	"slices"
)

// handoff finds the longest time during which the key was free after confirmed
// releases, and wanted. Nothing then keeps the lock from the waiter but a wake-up or
// its next poll, so the bound is shorter than that of a takeover. The key counts as
// held while an attempt may have left something: until its release or clean-up was
// confirmed, else for a takeover bound. The stalls of any client are taken off, since
// the lock may have been granted to that client.
func (p *part) handoff(wanted, held []stretch) {
	if len(p.batches) > 0 {
		return // it waits for its other keys too
	}
	taken := append(slices.Clone(held), p.disturbed...)
	first := int64(math.MaxInt64)
	for i := range p.attempts {
		a := &p.attempts[i]
		c := &p.calls[a.acquire]
		switch {
		case a.over != none:
			freed := p.calls[a.over].Return
			taken = append(taken, stretch{p.calls[a.firstRelease].Invoke, freed})
			first = min(first, freed)
		case a.cleaned != none:
			taken = append(taken, stretch{p.ended(c), p.calls[a.cleaned].Return})
		case a.held(p.calls) || a.unknown(p.calls):
			taken = append(taken, stretch{p.ended(c), p.stamp(a.last) + int64(p.opt.Takeover)})
		}
	}
	taken = append(taken, stretch{math.MinInt64, first})
	p.rep.Handoff = p.longest(wanted, taken, p.stalled)
	if p.rep.Handoff.Length() > int64(p.opt.Handoff) {
		p.keepStuck(SlowHandoff, p.rep.Handoff)
	}
}
