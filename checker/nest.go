package checker

// Of a re-entrant lock only the outermost acquire and the last release of its
// owner matter to others: whatever lies between is inside a hold that is proved
// already. nest folds each client's attempts that meet in time into the first
// of them, and marks the others as inner. What an inner call whose outcome is
// unknown did to the owner's count nobody knows: then the count may never have
// come to nothing, and the end of that hold proves no more that the lock is
// free.

// nest folds the attempts of each (key, client).
func (r *record) nest() {
	type owner struct{ key, client uint32 }
	open := map[owner]*outer{}
	for i := range r.attempts {
		a := &r.attempts[i]
		if a.malformed {
			continue
		}
		o := open[owner{a.key, a.client}]
		if o != nil && r.calls[a.acquire].Invoke < o.end {
			o.add(r, a)
			continue
		}
		if !a.granted(r.calls) {
			continue // of its own it makes no hold
		}
		if o != nil {
			o.fold(r)
		}
		open[owner{a.key, a.client}] = newOuter(r, a)
	}
	for _, o := range open {
		o.fold(r)
	}
}

// outer is a hold while its inner attempts are gathered.
type outer struct {
	first *attempt
	sum   attempt // of all its attempts
	end   int64   // by the client's view
	inner bool    // there are inner grants
}

func newOuter(r *record, a *attempt) *outer {
	o := &outer{first: a, sum: *a, end: r.hold(a).End}
	o.sum.vague = r.unsure(a)
	return o
}

// unsure: an answer is missing, so that a's part in the count is not certain.
func (r *record) unsure(a *attempt) bool {
	return a.unknown(r.calls) || a.firstSent != none && a.over == none && a.gone == none
}

// add puts a, which begins within the hold, to its attempts.
func (o *outer) add(r *record, a *attempt) {
	a.inner = true
	s := &o.sum
	s.vague = s.vague || r.unsure(a)
	s.last = max(s.last, a.last)
	if !a.granted(r.calls) {
		return
	}
	o.inner = true
	// A grant of the inner attempt proves the whole as a renewal would.
	for _, proof := range []int32{a.acquire, a.proof} {
		if proof != none && (s.proof == none || before(r.calls, s.proof, proof)) {
			s.proof = proof
		}
	}
	s.lastExtend = max(s.lastExtend, a.lastExtend)
	if a.lost != none && (s.lost == none || lossSeen(&r.calls[a.lost]) < lossSeen(&r.calls[s.lost])) {
		s.lost = a.lost
	}
	for _, p := range []struct{ to, from *int32 }{{&s.toldLost, &a.toldLost}, {&s.lostAnswer, &a.lostAnswer}} {
		if *p.from != none && before(r.calls, *p.from, *p.to) {
			*p.to = *p.from
		}
	}
	// The release that brings the count to nothing is the last one; an attempt
	// that is never released keeps it up.
	h := r.hold(a)
	if h.End > o.end || h.Ended == StreamEnd {
		o.end = max(o.end, h.End)
		s.firstRelease, s.firstSent, s.over = a.firstRelease, a.firstSent, a.over
	}
}

// fold makes the first attempt stand for all.
func (o *outer) fold(r *record) {
	if o.inner {
		o.sum.gone = none
	}
	*o.first = o.sum
}
