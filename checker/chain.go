package checker

import (
	"cmp"
	"slices"
)

// A lease of known TTL delays the grants that follow: a grant after it takes
// effect no earlier than the lease's end, and so ends later itself. A grant may
// then be due after its own answer although no two grants contradict one
// another: with a TTL of 10, grants in [0,8], [5,13] and [18,19] are impossible
// together, since the second took effect at 10 or later.
//
// chain walks through the grants in the order of their answers, and places each
// as early as possible. That order is the only one if every grant is answered
// within its TTL: otherwise the grant answered first would have to wait for the
// whole lease of the other. Grants answered later, and acquires without an
// answer, are left out.

type link struct {
	ac, ar int64
	at     int32
}

// chain finds grants within the lease of an earlier grant.
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
			at, until = x.ac, -forever // do not accuse the following grants too
		}
		if end := p.leastEnd(&p.attempts[x.at], at); end > until {
			until, holder = end, x.at
		}
	}
}

func (p *part) grantOf(at int32) int32 { return p.attempts[at].acquire }

// leastEnd is the earliest end of a's lease if it was granted at the given time.
func (p *part) leastEnd(a *attempt, granted int64) int64 {
	u := p.uncertainty(p.client(a))
	from := granted
	if a.lastExtend != none {
		from = max(from, p.calls[a.lastExtend].Invoke-u)
	}
	end := from + p.leaseLength()
	if a.firstSent != none {
		end = min(end, max(granted, p.calls[a.firstSent].Invoke-u))
	}
	if a.proof != none {
		end = max(end, p.calls[a.proof].Invoke-u)
	}
	return end
}
