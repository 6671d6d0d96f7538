package checker

import "github.com/lockbench/lockbench/history"

// Of a re-entrant lock only the outermost acquire and the last release of its
// owner matter to others: whatever lies between is inside a hold that is proved
// already. nest folds each client's attempts that meet in time into the first
// of them, and marks the others as innep. What an inner call whose outcome is
// unknown did to the owner's count nobody knows: then the count may never have
// come to nothing, and the end of that hold proves no more that the lock is
// free.

// nest folds the attempts of each client.
func (p *part) nest() {
	owners := map[uint32]*owner{}
	for i := range p.attempts {
		a := &p.attempts[i]
		who := owners[p.client(a)]
		if who == nil {
			who = &owner{}
			owners[p.client(a)] = who
		}
		who.meet(p, a)
	}
	for _, who := range owners {
		who.hold.fold(p.opt.Leased)
	}
}

// owner is a client whose attempts are gathered, in the order of their calls.
type owner struct {
	hold           *outer   // the one that is open, or was last
	open           *attempt // the last acquire whose outcome is unknown
	countUncertain bool     // from some call on its count is not certain
}

func (who *owner) meet(p *part, a *attempt) {
	begin := p.calls[a.acquire].Invoke
	if o := who.hold; o != nil && begin < o.end {
		o.add(p, a)
	} else if a.granted(p.calls) {
		who.hold.fold(p.opt.Leased)
		who.hold = newOuter(p, a)
		if x := who.open; x != nil && p.stamp(x.last) > begin {
			// It goes on within this hold, which may have begun by it.
			x.inner = true
			who.hold.sum.since = x.since
		}
	}
	if a.unknown(p.calls) {
		if x := who.open; x != nil && p.stamp(x.last) > begin {
			a.inner = true
		} else {
			who.open = a
		}
	}
	who.countUncertain = who.countUncertain || p.unsure(a)
	if who.hold != nil && begin <= who.hold.end { // one that was over by then was counted right
		who.hold.sum.countUncertain = who.hold.sum.countUncertain || who.countUncertain
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
	if !p.lostUnreleased(a) {
		o.sum.lostAnswer = none
	}
	return o
}

// unsure: an answer is missing, so that a's part in the count is not certain.
func (p *part) unsure(a *attempt) bool {
	if a.gone != none && p.calls[a.gone].Outcome == history.Released {
		return false // all of it was cleaned up
	}
	return a.unknown(p.calls) || a.firstSent != none && a.over == none && a.gone == none
}

// add puts a, which begins within the hold, to its attempts.
func (o *outer) add(p *part, a *attempt) {
	a.inner = true
	if !p.opt.Leased && p.calls[a.acquire].Outcome == history.Busy && returned(&p.calls[a.acquire]) <= o.end {
		// Nothing can have ended the hold meanwhile, and its owner is not kept
		// out by it.
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
	if a.signalledLost != none && before(p.calls, a.signalledLost, s.signalledLost) {
		s.signalledLost = a.signalledLost
	}
	if p.lostUnreleased(a) && before(p.calls, a.lostAnswer, s.lostAnswer) {
		s.lostAnswer = a.lostAnswer
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
func (o *outer) fold(leased bool) {
	if o == nil {
		return
	}
	if o.inner && leased {
		// The lease may have ended, and the inner acquire have taken the lock
		// anew: that the owner had it then proves nothing of the time between.
		o.sum.proof, o.sum.confirmed, o.sum.lastExtend = none, none, none
	}
	if o.inner {
		o.sum.gone = none
	}
	*o.first = o.sum
}
