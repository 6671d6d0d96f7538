package checker

// Of a re-entrant lock only the outermost acquire and the last release of its
// owner matter to others: whatever lies between is inside a hold that is proved
// already. nest folds each client's attempts that meet in time into the first
// of them, and marks the others as innep. What an inner call whose outcome is
// unknown did to the owner's count nobody knows: then the count may never have
// come to nothing, and the end of that hold proves no more that the lock is
// free.

// nest folds the attempts of each client.
func (p *part) nest() {
	open := map[uint32]*outer{}
	for i := range p.attempts {
		a := &p.attempts[i]
		if a.malformed {
			continue
		}
		o := open[p.client(a)]
		if o != nil && p.calls[a.acquire].Invoke < o.end {
			o.add(p, a)
			continue
		}
		if !a.granted(p.calls) {
			continue // of its own it makes no hold
		}
		if o != nil {
			o.fold(p)
		}
		open[p.client(a)] = newOuter(p, a)
	}
	for _, o := range open {
		o.fold(p)
	}
}

// outer is a hold while its inner attempts are gathered.
type outer struct {
	first *attempt
	sum   attempt // of all its attempts
	end   int64   // by the client's view
	inner bool    // there are inner grants
}

func newOuter(p *part, a *attempt) *outer {
	o := &outer{first: a, sum: *a, end: p.hold(a).End}
	o.sum.vague = p.unsure(a)
	return o
}

// unsure: an answer is missing, so that a's part in the count is not certain.
func (p *part) unsure(a *attempt) bool {
	return a.unknown(p.calls) || a.firstSent != none && a.over == none && a.gone == none
}

// add puts a, which begins within the hold, to its attempts.
func (o *outer) add(p *part, a *attempt) {
	a.inner = true
	s := &o.sum
	s.vague = s.vague || p.unsure(a)
	if p.stamp(a.last) > p.stamp(s.last) {
		s.last = a.last
	}
	if !a.granted(p.calls) {
		return
	}
	o.inner = true
	// A grant of the inner attempt proves the whole as a renewal would.
	for _, proof := range []int32{a.acquire, a.proof} {
		if proof != none && (s.proof == none || before(p.calls, s.proof, proof)) {
			s.proof = proof
		}
	}
	if a.lastExtend != none && (s.lastExtend == none || before(p.calls, s.lastExtend, a.lastExtend)) {
		s.lastExtend = a.lastExtend
	}
	if a.lost != none && (s.lost == none || lossSeen(&p.calls[a.lost]) < lossSeen(&p.calls[s.lost])) {
		s.lost = a.lost
	}
	for _, first := range []struct{ to, from *int32 }{{&s.toldLost, &a.toldLost}, {&s.lostAnswer, &a.lostAnswer}} {
		if *first.from != none && before(p.calls, *first.from, *first.to) {
			*first.to = *first.from
		}
	}
	// The release that brings the count to nothing is the last one; an attempt
	// that is never released keeps it up.
	h := p.hold(a)
	if h.End > o.end || h.Ended == StreamEnd {
		o.end = max(o.end, h.End)
		s.firstRelease, s.firstSent, s.over = a.firstRelease, a.firstSent, a.over
	}
}

// fold makes the first attempt stand for all.
func (o *outer) fold(p *part) {
	if o.inner {
		o.sum.gone = none
	}
	*o.first = o.sum
}
