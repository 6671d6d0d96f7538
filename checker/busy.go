package checker

import (
	"cmp"
	"slices"
)

// A busy answer proves that some attempt had the lock at a moment between the
// try's call and its return. busy finds the tries for which no order of the calls
// makes that true. It is the only rule that must choose the moments at which
// calls took effect; the choices that remain decide the method:
//   - a plain lock: a search, which is exact (frontier.go);
//   - a lock with readers: envelopes, which are exact if all outcomes are known
//     (envelope.go);
//   - a lock whose tries yield to other attempts; a lock whose grants contradict
//     one another already; a re-entrant lease, which may end and be granted anew
//     to its owner's inner acquire: a busy answer is unexplained if no other
//     attempt existed at all. That is sound, and misses much.
func (p *part) busy(fit bool) {
	refused := p.refusals()
	if len(refused) == 0 {
		return
	}
	if p.incomplete() {
		p.rep.Undecided += int64(len(refused))
		p.rep.UndecidedWhy = "a hold that explains them may be missing from the record"
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

// incomplete reports whether a hold may be missing from the key's record.
func (p *part) incomplete() bool {
	return p.damage > 0 || p.rep.Malformed > 0 || p.opt.Incomplete != ""
}

// reportUnexplained reports a try that returned busy although no attempt can have
// had the lock.
func (p *part) reportUnexplained(r refusal, items []item) {
	try := p.acquire(r.at)
	if p.full(UnexplainedBusy) {
		p.refused(try)
		return
	}
	// The certain holds next to it: how the previous one ended, and how the next
	// one began.
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

// refused counts an unexplained busy answer, and keeps it with the other calls,
// where they are known.
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

// underway lists the time that every attempt was under way, granted or not: a
// place in a queue lasts as long.
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

// reportWithoutHolder reports the busy tries during which no other attempt in
// about existed. The tries are in order of their return.
func (p *part) reportWithoutHolder(refused []timed, about []item) {
	slices.SortFunc(about, func(a, b item) int { return cmp.Or(cmp.Compare(a.ac, b.ac), cmp.Compare(a.at, b.at)) })
	// The two latest ends of different attempts among the items so far.
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
