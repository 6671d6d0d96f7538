package checker

import "github.com/lockbench/lockbench/history"

// Of a re-entrant lock only the outermost acquire and the last release of its
// owner matter to other clients: the calls in between are inside a hold that is
// proved already. nest folds each client's attempts that meet in time into the
// first of them, and marks the others as inner. An inner call of unknown outcome
// makes the owner's hold count uncertain: the count may never reach zero, and the
// end of that hold no longer proves that the lock is free.

// nest folds the attempts of each client.
func (p *part) nest() {
	owners := map[uint32]*owner{}
	for i := range p.attempts {
		a := &p.attempts[i]
		o := owners[p.client(a)]
		if o == nil {
			o = &owner{}
			owners[p.client(a)] = o
		}
		o.add(p, a)
	}
	for _, o := range owners {
		o.hold.fold(p.opt.Leased)
	}
}

// owner is a client whose attempts are added in the order of their calls.
type owner struct {
	hold           *outer   // the current one, or the last
	open           *attempt // the last acquire of unknown outcome
	countUncertain bool     // from some call on its hold count is uncertain
}

func (o *owner) add(p *part, a *attempt) {
	begin := p.calls[a.acquire].Invoke
	if h := o.hold; h != nil && begin < h.end {
		h.add(p, a)
	} else if a.granted(p.calls) {
		o.hold.fold(p.opt.Leased)
		o.hold = newOuter(p, a)
		if x := o.open; x != nil && p.stamp(x.last) > begin {
			// It continues within this hold, which may have begun with it.
			x.inner = true
			o.hold.sum.since = x.since
		}
	}
	if a.unknown(p.calls) {
		if x := o.open; x != nil && p.stamp(x.last) > begin {
			a.inner = true
		} else {
			o.open = a
		}
	}
	o.countUncertain = o.countUncertain || p.unsure(a)
	if o.hold != nil && begin <= o.hold.end { // a hold that ended before was counted correctly
		o.hold.sum.countUncertain = o.hold.sum.countUncertain || o.countUncertain
	}
}

// outer is a hold while its inner attempts are added.
type outer struct {
	first *attempt
	sum   attempt // of all its attempts
	end   int64   // in the client's view
	inner bool    // there are inner grants
}

func newOuter(p *part, a *attempt) *outer {
	o := &outer{first: a, sum: *a, end: p.hold(a).End}
	if !p.lostUnreleased(a) {
		o.sum.lostAnswer = none
	}
	return o
}

// unsure reports whether an answer is missing, so that a's part in the hold count
// is uncertain.
func (p *part) unsure(a *attempt) bool {
	if a.gone != none && p.calls[a.gone].Outcome == history.Released {
		return false // all of it was cleaned up
	}
	return a.unknown(p.calls) || a.firstSent != none && a.over == none && a.gone == none
}

// add adds a, which begins within the hold.
func (o *outer) add(p *part, a *attempt) {
	a.inner = true
	if !p.opt.Leased && !p.incomplete() && p.calls[a.acquire].Outcome == history.Busy && returned(&p.calls[a.acquire]) <= o.end {
		// Nothing can have ended the hold, and it does not exclude its owner.
		p.refused(a.acquire, o.first.acquire)
	}
	s := &o.sum
	if p.stamp(a.last) > p.stamp(s.last) {
		s.last = a.last
	}
	if !a.granted(p.calls) {
		return
	}
	o.inner = true
	// A grant of the inner attempt proves the whole hold as a renewal would.
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
	if a.signalledLost != none && before(p.calls, a.signalledLost, s.signalledLost) {
		s.signalledLost = a.signalledLost
	}
	if p.lostUnreleased(a) && before(p.calls, a.lostAnswer, s.lostAnswer) {
		s.lostAnswer = a.lostAnswer
	}
	// The last release brings the count to zero; an attempt that is never released
	// keeps the hold.
	h := p.hold(a)
	if h.End > o.end || h.Ended == StreamEnd {
		o.end = max(o.end, h.End)
		s.firstRelease, s.firstSent, s.over = a.firstRelease, a.firstSent, a.over
	}
}

// fold stores the sum in the first attempt.
func (o *outer) fold(leased bool) {
	if o == nil {
		return
	}
	if o.inner && leased {
		// The lease may have ended and been granted anew to the inner acquire: so
		// the inner grant proves nothing of the time between.
		o.sum.proof, o.sum.confirmed, o.sum.lastExtend = none, none, none
	}
	if o.inner {
		o.sum.gone = none
	}
	*o.first = o.sum
}
