package checker

import (
	"cmp"
	"slices"
)

// A lease of known time pushes what follows: whoever was granted the lock after
// it was granted no earlier than it ended, and so holds it until later. In the
// end a grant may be due after its own answer, although no two grants by
// themselves contradict one another: with a lease of 10, grants in [0,8],
// [5,13] and [18,19] cannot all be, since the second took effect at 10 at the
// earliest.
//
// chain walks through the grants in the order of their answers, and lets each
// take effect as early as it can. That order is the only one if every grant is
// answered within its lease's time: of two, the one answered first would else
// have to wait for the whole lease of the other. A grant that was answered
// later takes no part, nor does an acquire whose answer is missing.

type link struct {
	ac, ar int64
	at     int32
}

// chain finds grants that came within the time of those before them.
func (p *part) chain() {
	if p.leaseLength() <= 0 || p.damage > 0 || p.sharing {
		return
	}
	var links []link
	for i := range p.attempts {
		a := &p.attempts[i]
		if !a.held(p.calls) {
			continue
		}
		c, u := &p.calls[a.acquire], p.uncertainty(p.client(a))
		if c.Return-c.Invoke < p.leaseLength() {
			links = append(links, link{ac: c.Invoke - u, ar: c.Return + u, at: int32(i)})
		}
	}
	slices.SortFunc(links, func(a, b link) int {
		return cmp.Or(cmp.Compare(a.ar, b.ar), cmp.Compare(a.ac, b.ac), cmp.Compare(a.at, b.at))
	})
	until, holder := -int64(forever), none
	for _, x := range links {
		at := max(x.ac, until)
		if at > x.ar {
			p.breach(EarlyExpiry, p.grantOf(holder), p.grantOf(x.at))
			at, until = x.ac, -forever // it must not make others look early too
		}
		if end := p.leastEnd(&p.attempts[x.at], at); end > until {
			until, holder = end, x.at
		}
	}
}

func (p *part) grantOf(at int32) int32 { return p.attempts[at].acquire }

// leastEnd is the earliest end of a's lease, if it was granted at the moment
// given.
func (p *part) leastEnd(a *attempt, granted int64) int64 {
	u := p.uncertainty(p.client(a))
	from := granted
	if a.lastExtend != none {
		from = max(from, p.calls[a.lastExtend].Invoke-u)
	}
	end := from + p.leaseLength()
	if a.firstSent != none {
		end = min(end, max(granted, p.calls[a.firstSent].Invoke-u))
	} else if p.unfinished {
		end = min(end, max(granted, p.end+1-u))
	}
	if a.proof != none {
		end = max(end, p.calls[a.proof].Invoke-u)
	}
	return end
}
