package checker

import "slices"

// The lock's own answers prove that a grant held from ar to rc. Two grants of
// one key are compatible if and only if NOT (g.ar < h.rc AND h.ar < g.rc): with
// every grant placed at its ar and every end at its rc, the holds follow one
// another.
//
//   - ar is the return of the acquire; if the outcome of the acquire is unknown,
//     the first return of a successful release or renewal. An unknown acquire
//     that nothing confirms may never have happened, and is left out. A
//     confirmed clean-up confirms no hold, since it may have removed only a
//     place in a queue.
//   - rc of a mutex is the end of the client's hold: nothing else can end it.
//   - rc of a lease is the call of its last confirmed release or renewal. If
//     there is none, the grant took effect between the acquire's call and its
//     return, and nothing more is known: rc is that call, earlier than ar.
//   - a lease of known TTL is also proved for the TTL from the call of the
//     acquire, or of the last confirmed renewal, until a release was sent.

// proof returns the span proved for attempt i without and with the lease's TTL;
// ok is false if nothing is proved.
func (p *part) proof(i int32) (untimed, timed span, ok bool) {
	a := &p.attempts[i]
	if a.inner {
		return span{}, span{}, false
	}
	grant := &p.calls[a.acquire]
	held := a.held(p.calls)
	if !held && (a.proof == none || !a.unknown(p.calls)) {
		return span{}, span{}, false
	}
	x := p.span(i, grant.Return, grant.Invoke)
	if !held {
		x.s = p.calls[a.confirmed].Return
	}
	// Of a re-entrant lock, calls of its owner may be missing that end the one hold and
	// begin the next.
	if a.proof != none && (!p.opt.Reentrant || p.unbroken(a, a.proof)) {
		x.e = p.calls[a.proof].Invoke
	}
	if !p.opt.Leased {
		// If the lock signalled the loss, the loss may be much older.
		if held && a.signalledLost == none && !p.lostUnreleased(a) {
			x.e = max(x.e, p.hold(a).End)
		}
		return x, x, true
	}
	y := x
	y.e = max(y.e, p.leaseEnd(a))
	return x, y, true
}

// lostUnreleased reports whether the lock was answered lost although no sent
// release can have freed it.
func (p *part) lostUnreleased(a *attempt) bool {
	return a.lostAnswer != none && (a.firstSent == none || !before(p.calls, a.firstSent, a.lostAnswer))
}

// leaseEnd is the time until which a's lease certainly ran, by its TTL; 0 if
// unknown.
func (p *part) leaseEnd(a *attempt) int64 {
	until := p.leaseTime(a)
	if until == 0 {
		return 0
	}
	if i := a.firstSent; i != none {
		until = min(until, p.calls[i].Invoke)
	}
	if p.damage > 0 && a.held(p.calls) {
		until = min(until, p.runOf(a).end)
	} else if p.damage > 0 {
		return 0
	}
	return until
}

// leaseTime is leaseEnd without regard to a release.
func (p *part) leaseTime(a *attempt) int64 {
	return p.leaseFrom(a, func(c *call) int64 { return c.Invoke })
}

// leaseFrom is when a's lease ends, counted from the given stamp of its last
// confirmation; 0 if unknown.
func (p *part) leaseFrom(a *attempt, moment func(*call) int64) int64 {
	ttl := p.leaseLength()
	if ttl <= 0 {
		return 0
	}
	from := moment(&p.calls[a.acquire])
	if a.lastExtend != none {
		from = max(from, moment(&p.calls[a.lastExtend]))
	}
	return from + ttl
}

// leaseLength is how long a lease certainly lasts; 0 or less if unknown.
func (p *part) leaseLength() int64 {
	if !p.opt.Leased || p.opt.TTL <= 0 {
		return 0
	}
	return int64(p.opt.TTL - p.opt.TTL/1000 - p.opt.Slack)
}

// breaches judges the attempts against the lock's model.
func (p *part) breaches() {
	timed := make([]span, 0, len(p.attempts))
	for i := range p.attempts {
		if _, y, ok := p.proof(int32(i)); ok {
			timed = append(timed, y)
		}
		p.answers(&p.attempts[i])
	}
	fit := true
	groups(timed, observed, func(group []span) {
		if total := countClashes(group, certain); total > 0 {
			fit = false
			p.classify(group, total)
		}
	})
	if fit {
		fit = p.fitAmongReaders(timed)
		p.chain()
	}
	p.busy(fit)
	p.tokens(fit)
}

// classify assigns classes to the clashes of a group; their counts sum to total.
// A pair is an early expiry only if nothing but the TTL proves the clash.
func (p *part) classify(group []span, total int64) {
	plain := make([]span, len(group))
	for k, y := range group {
		plain[k], _, _ = p.proof(y.at)
	}
	proved := countClashes(plain, certain)
	if total > maxClassified {
		p.breached[NoKnownCause] += total
	} else {
		sorted := slices.Clone(group)
		sortSpans(sorted, observed)
		meeting(sorted, func(y, x span) bool {
			if clash(x, y) {
				p.breached[p.causeOf(y, x)]++
			}
			return true
		})
	}
	if expired := total - proved; expired > 0 {
		p.rep.Breaches[EarlyExpiry] += expired
	}
	zombies := p.zombies(plain, proved)
	if zombies > 0 {
		p.rep.Breaches[ZombieSuccess] += zombies
	}
	if proved > zombies {
		p.rep.Breaches[DoubleHold] += proved - zombies
	}
	if p.full(DoubleHold) && p.full(ZombieSuccess) && p.full(EarlyExpiry) {
		return
	}
	for _, pair := range findClashes(group, 3*p.opt.maxWitnesses()) {
		x, _, _ := p.proof(pair[0].at)
		y, _, _ := p.proof(pair[1].at)
		class := EarlyExpiry
		if clash(x, y) {
			class, pair = DoubleHold, [2]span{x, y}
			if p.zombie(x, y) || p.zombie(y, x) {
				class = ZombieSuccess
			}
		}
		w, calls := p.pairWitness(class, pair[0], pair[1])
		w.Cause = p.causeOf(pair[0], pair[1])
		p.keep(w, calls...)
	}
}

// zombie reports whether the success that proves x came after y's whole hold,
// and nothing before y proves x. Then x's lease may have ended lawfully before
// y was granted, and the late success is the error.
func (p *part) zombie(x, y span) bool {
	return p.opt.Leased && x.s <= y.s && y.e < x.e && p.leaseEnd(&p.attempts[x.at]) <= y.s && clash(x, y)
}

// maxClassified bounds the pairs that are classified one by one.
const maxClassified = 1 << 20

// zombies counts the zombie successes among the proved clashing pairs. Beyond
// maxClassified pairs all count as double holds.
func (p *part) zombies(spans []span, proved int64) int64 {
	if !p.opt.Leased || proved == 0 || proved > maxClassified {
		return 0
	}
	var n int64
	sortSpans(spans, observed)
	meeting(spans, func(y, x span) bool {
		if p.zombie(y, x) {
			n++
		}
		return true
	})
	return n
}

// answers finds the breaches within one attempt.
func (p *part) answers(a *attempt) {
	if a.also {
		return
	}
	p.late(a)
	if a.contradicted {
		p.breach(FalseDefinite, a.acquire, a.confirmed)
	}
	// Nothing may succeed once the attempt's lock is over. An unknown acquire may
	// have taken effect after an answer that found nothing.
	for _, end := range []int32{a.over, a.gone} {
		if end == none || a.proof == none || p.opt.Reentrant && p.incomplete() || end == a.gone && !a.granted(p.calls) && !before(p.calls, a.confirmed, end) {
			continue
		}
		if late := &p.calls[a.proof]; late.Seq > p.calls[end].Seq && late.Invoke >= returned(&p.calls[end]) {
			p.breach(ZombieSuccess, a.acquire, end, a.proof)
			break
		}
	}
	if !a.held(p.calls) {
		return
	}
	if a.countUncertain || p.opt.Reentrant && p.incomplete() || !p.lostUnreleased(a) || !p.unbroken(a, a.lostAnswer) {
		return
	}
	answer := &p.calls[a.lostAnswer]
	if !p.opt.Leased {
		// A mutex may be lost after the lock signalled it to the client; without
		// a signal it must still be there when it is released.
		if a.signalledLost == none || before(p.calls, a.lostAnswer, a.signalledLost) {
			p.breach(LostLock, a.acquire, a.lostAnswer)
		}
		return
	}
	if a.lastExtend != none && p.calls[a.lastExtend].Invoke > answer.Invoke {
		return // it was renewed later, so the answer was wrong: counted above
	}
	if until := p.leaseTime(a); until > 0 && returned(answer) < until {
		p.breach(LostLock, a.acquire, a.lostAnswer)
	}
}

// breach counts a breach and keeps the calls that prove it, in the given order.
func (p *part) breach(class Class, calls ...int32) {
	p.rep.Breaches[class]++
	cause := p.causeOfBreach(calls)
	p.breached[cause]++
	first, last := &p.calls[calls[0]], &p.calls[calls[len(calls)-1]]
	p.keep(Witness{Class: class, Key: p.key, From: first.Return, To: last.Return, Cause: cause}, calls...)
}
