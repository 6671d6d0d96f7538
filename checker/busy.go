package checker

import (
	"cmp"
	"slices"
)

// A try that was refused proves that somebody had the lock at a moment between
// its call and its return. busy looks for those of which no order of the calls
// makes that true. It is the one rule for which the moments at which calls took
// effect must be chosen; which choice is left decides how:
//
//   - of a plain lock, by a search that decides exactly (frontier.go);
//   - of a lock with readers, by envelopes, which are exact as long as all
//     outcomes are known (envelope.go);
//   - of a lock whose tries yield to other attempts; of one whose grants
//     contradict one another already; and of a re-entrant lease, which may end
//     under its owner and be taken anew by the inner acquire: a try is refused
//     for nothing if nobody at all was about. That never accuses wrongly, and
//     misses much.
func (p *part) busy(fit bool) {
	refused := p.refusals()
	if len(refused) == 0 {
		return
	}
	items := make([]item, 0, len(p.attempts))
	for i := range p.attempts {
		if x, ok := p.item(int32(i)); ok {
			items = append(items, x)
		}
	}
	switch {
	case p.opt.TriesYield:
		p.reportWithoutHolder(refused, append(items, p.underway()...))
	case !fit, p.opt.Leased && p.opt.Reentrant:
		p.reportWithoutHolder(refused, items)
	case p.sharing:
		p.envelopes(refused, items)
	default:
		p.search(refused, items)
	}
}

// reportUnexplained reports a try that was refused although nobody can have had the lock.
func (p *part) reportUnexplained(r refusal, items []item) {
	try := p.acquire(r.at)
	if p.full(UnexplainedBusy) {
		p.refused(try)
		return
	}
	// The certain holds next to it: how the one before ended, and how the one
	// after began.
	earlier, later := none, none
	for _, x := range items {
		if x.optional {
			continue
		}
		a := &p.attempts[x.at]
		switch {
		case x.rr < r.from && a.proof != none && (earlier == none || p.stamp(a.proof) > p.stamp(earlier)):
			earlier = a.proof
		case x.ac > r.to && (later == none || p.calls[a.acquire].Invoke < p.calls[later].Invoke):
			later = a.acquire
		}
	}
	p.refused(try, earlier, later)
}

// refused counts a try that should not have been refused, and shows it with
// the other calls, where they are known.
func (p *part) refused(try int32, others ...int32) {
	p.rep.Breaches[UnexplainedBusy]++
	calls := []int32{try}
	for _, i := range others {
		if i != none {
			calls = append(calls, i)
		}
	}
	c := &p.calls[try]
	p.keep(Witness{Class: UnexplainedBusy, Key: p.key, From: c.Invoke, To: c.Return}, calls...)
}

// underway gives every attempt's time on the way, whether it got the lock or
// not: a place in a queue stands for as long.
func (p *part) underway() []item {
	var list []item
	for i := range int32(len(p.attempts) + len(p.alone)) {
		c := &p.calls[p.acquire(i)]
		end := returned(c)
		if int(i) < len(p.attempts) && p.attempts[i].unknown(p.calls) {
			end = p.freed(&p.attempts[i])
		}
		u := p.uncertainty(c.Client)
		list = append(list, item{ac: c.Invoke - u, rr: end + u, at: i, optional: true})
	}
	return list
}

// reportWithoutHolder finds the tries that were refused while no other attempt was about. They
// are in order of their return.
func (p *part) reportWithoutHolder(refused []timed, about []item) {
	slices.SortFunc(about, func(a, b item) int { return cmp.Or(cmp.Compare(a.ac, b.ac), cmp.Compare(a.at, b.at)) })
	// The furthest two ends of different attempts among the items so far.
	type ends struct {
		one, two int64
		at       int32
	}
	ahead := make([]ends, len(about)+1)
	ahead[0] = ends{-forever, -forever, none}
	for i, x := range about {
		e := ahead[i]
		switch {
		case x.at == e.at:
			e.one = max(e.one, x.rr)
		case x.rr > e.one:
			e = ends{x.rr, e.one, x.at}
		default:
			e.two = max(e.two, x.rr)
		}
		ahead[i+1] = e
	}
	k := 0 // items that may have begun by the try's return
	for _, x := range refused {
		r := p.refusal(x.number)
		for k < len(about) && about[k].ac <= r.to {
			k++
		}
		furthest := ahead[k].one
		if ahead[k].at == r.at {
			furthest = ahead[k].two
		}
		if furthest < r.from {
			p.reportUnexplained(r, about)
		}
	}
}
