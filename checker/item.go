package checker

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// item is what is known of the time at which one attempt may have had the lock:
// it was granted between ac and ar, and released between rc and rr, not before
// its grant. An item that is not optional certainly had the lock, and in any case
// from ar to rc, unless rc comes first.
type item struct {
	ac, ar   int64
	rc, rr   int64
	at       int32
	optional bool // the outcome of its acquire is unknown, and nothing proves it
}

// item returns the item of attempt i; ok is false if it certainly never had the
// lock. All stamps are widened by the clocks' uncertainty.
func (p *part) item(i int32) (x item, ok bool) {
	a := &p.attempts[i]
	if a.inner {
		return item{}, false
	}
	_, proved, sure := p.proof(i)
	switch {
	case sure:
		x = item{ac: p.calls[a.since].Invoke, ar: proved.s, rc: proved.e, rr: p.freed(a), at: i}
		if l := a.lostAnswer; !a.granted(p.calls) && l != none && before(p.calls, l, a.proof) {
			x.ac = max(x.ac, p.calls[l].Invoke) // it was not granted before
		}
	case a.unknown(p.calls):
		x = p.supposed(a)
		x.at = i
	default:
		return item{}, false
	}
	x.rr = max(x.rr, x.ac)
	x.ar = min(x.ar, x.rr)
	x.rc = min(max(x.rc, x.ac), x.rr)
	u := p.uncertainty(p.client(a))
	return item{ac: x.ac - u, ar: x.ar + u, rc: x.rc - u, rr: x.rr + u, at: i, optional: x.optional}, true
}

// freed is when nothing of a's lock can be left, for a proved attempt.
func (p *part) freed(a *attempt) int64 {
	t := int64(forever)
	if a.countUncertain {
		return t
	}
	if a.over != none {
		t = returned(&p.calls[a.over])
	}
	if a.gone != none && (a.proof == none || before(p.calls, a.proof, a.gone)) {
		t = min(t, returned(&p.calls[a.gone]))
	}
	return t
}

// supposed is the item of an unknown acquire without proof: it may have taken
// effect at any time, or never.
func (p *part) supposed(a *attempt) item {
	x := item{ac: p.calls[a.acquire].Invoke, ar: forever, rr: forever, optional: true}
	end := p.clients.of(p.client(a)).last
	if i := a.cleaned; i != none {
		x.rr, end = returned(&p.calls[i]), p.calls[i].Invoke
	}
	switch {
	case p.opt.Leased, p.opt.Reentrant, a.lost != none:
		// It may have ended as soon as it began; or its owner's next hold is within
		// it.
		x.rc = x.ac
	case a.firstSent == none:
		x.rc = end
	case a.absent != none && !a.releaseUnknown && (a.cleaned == none || before(p.calls, a.absent, a.cleaned)):
		// It was not granted before, and nothing has freed it since.
		x.ac, x.rc = p.calls[a.absent].Invoke, end
	default:
		x.rc = p.calls[a.firstSent].Invoke
	}
	return x
}

// refusal is a try that returned busy.
type refusal struct {
	from, to int64
	at       int32 // its attempt number, as for acquire
}

// acquire returns the acquire of an attempt by number: p.attempts come first, then
// the busy tries without any other call.
func (p *part) acquire(number int32) int32 {
	if n := int32(len(p.attempts)); number >= n {
		return p.alone[number-n]
	}
	return p.attempts[number].acquire
}

// refusal is the busy try of an attempt number.
func (p *part) refusal(number int32) refusal {
	c := &p.calls[p.acquire(number)]
	u := p.uncertainty(c.Client)
	return refusal{from: c.Invoke - u, to: returned(c) + u, at: number}
}

// refusals lists the numbers of the busy tries by their return. A batch may be
// busy because of any of its keys, so it proves nothing for a single one.
func (p *part) refusals() []timed {
	var list []timed
	for i := range p.attempts {
		if a := &p.attempts[i]; !a.inner && !a.batch && !a.contradicted && p.calls[a.acquire].Outcome == history.Busy {
			list = append(list, timed{p.refusal(int32(i)).to, int32(i)})
		}
	}
	list = slices.Grow(list, len(p.alone))
	for i := range p.alone {
		number := int32(len(p.attempts) + i)
		list = append(list, timed{p.refusal(number).to, number})
	}
	sortTimed(list, func(i, j int32) int {
		if a, b := p.refusal(i).from, p.refusal(j).from; a != b {
			return cmp.Compare(a, b)
		}
		return p.inTime(p.acquire(i), p.acquire(j))
	})
	return list
}
