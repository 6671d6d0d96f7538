package checker

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// What the lock's own answers prove of a grant is a span from ar to rc: it
// certainly held from ar, and to rc. Two grants of one key fit together if and
// only if NOT (g.ar < h.rc AND h.ar < g.rc): put every grant at its ar and
// every end at its rc and the holds follow one another.
//
//   - ar is the return of the acquire; of an acquire whose outcome is unknown,
//     the first return of a release or renewal that succeeded. An unknown
//     acquire that nothing confirms may never have happened, and is left out.
//     A confirmed clean-up confirms no hold, for it may have removed only a
//     place in a queue.
//   - rc of a mutex is the end of the client's hold: nothing else can end it.
//   - rc of a lease is the call of its last confirmed release or renewal. With
//     none, nothing is known but that the grant lay between the acquire's call
//     and its return: rc is that call, earlier than ar.
//   - a lease of known TTL is also proved for that time from the call of the
//     acquire, or of the last confirmed renewal, until a release was sent.

// proof returns the span proved for a, and the same with the lease's time; ok
// is false if nothing is.
func (j *judgement) proof(i int32) (untimed, timed span, ok bool) {
	a := &j.attempts[i]
	if a.malformed {
		return span{}, span{}, false
	}
	grant := &j.calls[a.acquire]
	held := a.held(j.calls)
	if !held && (a.proof == none || !a.unknown(j.calls)) {
		return span{}, span{}, false
	}
	x := span{s: a.confirmed, e: grant.Invoke, u: j.uncertainty(a.client), worker: j.clients[a.client].stream.Worker, shared: a.shared, at: i}
	if held {
		x.s = grant.Return
	}
	if a.proof != none {
		x.e = j.calls[a.proof].Invoke
	}
	if !j.opt.Leased {
		// A lock that told of the loss may have been lost long before.
		if held && a.toldLost == none && !j.lostUnsent(a) {
			x.e = j.hold(a).End
			if a.proof != none {
				x.e = max(x.e, j.calls[a.proof].Invoke)
			}
		}
		return x, x, true
	}
	y := x
	if until := j.leaseEnd(a); until > y.e {
		y.e = until
	}
	return x, y, true
}

// lostUnsent: the lock said that it was lost though no release had been sent
// that could have freed it.
func (j *judgement) lostUnsent(a *attempt) bool {
	return a.lostAnswer != none && (a.firstSent == none || !before(j.calls, a.firstSent, a.lostAnswer))
}

// leaseEnd is the moment until which a's lease certainly ran, by its TTL; 0 if
// it is not known.
func (j *judgement) leaseEnd(a *attempt) int64 {
	until := j.leaseTime(a)
	if until == 0 {
		return 0
	}
	if i := a.firstSent; i != none {
		until = min(until, j.calls[i].Invoke)
	}
	if j.damaged && a.held(j.calls) {
		until = min(until, j.runOf(a).end)
	} else if j.damaged {
		return 0
	}
	return until
}

// leaseTime is the same without looking for a release.
func (j *judgement) leaseTime(a *attempt) int64 {
	ttl := j.opt.TTL - j.opt.TTL/1000 - j.opt.Slack
	if j.opt.TTL <= 0 || ttl <= 0 {
		return 0
	}
	from := max(j.calls[a.acquire].Invoke, a.lastExtend)
	return from + int64(ttl)
}

// breaches judges one key's attempts against the lock's model.
func (j *judgement) breaches(key uint32, first, last int32) {
	var timed []span
	for i := first; i < last; i++ {
		_, y, ok := j.proof(i)
		if ok {
			timed = append(timed, y)
		}
		j.answers(key, i)
	}
	j.busy(key, first, last, timed)
	groups(timed, observed, func(group []span) {
		total := countClashes(group, certain)
		if total == 0 {
			return
		}
		j.classify(key, group, total)
	})
}

// classify names the breaches of a group. The classes' counts sum to total;
// a pair is an early expiry only if nothing but the TTL proves it.
func (j *judgement) classify(key uint32, group []span, total int64) {
	plain := make([]span, len(group))
	for k, y := range group {
		plain[k], _, _ = j.proof(y.at)
	}
	proved := countClashes(plain, certain)
	if expired := total - proved; expired > 0 {
		j.rep.Breaches[EarlyExpiry] += expired
	}
	zombies := j.zombies(plain, proved)
	if zombies > 0 {
		j.rep.Breaches[ZombieSuccess] += zombies
	}
	if proved > zombies {
		j.rep.Breaches[DoubleHold] += proved - zombies
	}
	if j.full(DoubleHold) && j.full(ZombieSuccess) && j.full(EarlyExpiry) {
		return
	}
	for _, pair := range findClashes(group, 3*j.opt.maxWitnesses()) {
		x, _, _ := j.proof(pair[0].at)
		y, _, _ := j.proof(pair[1].at)
		class := EarlyExpiry
		if clash(x, y, certain) {
			class, pair = DoubleHold, [2]span{x, y}
			if j.zombie(x, y) || j.zombie(y, x) {
				class = ZombieSuccess
			}
		}
		j.keep(j.pairWitness(class, key, pair[0], pair[1]))
	}
}

// zombie reports whether the success that proves x came after y's whole hold,
// with nothing that proves x before it: x's lease may have ended lawfully when
// y was granted, and then it is the late success that was wrong.
func (j *judgement) zombie(x, y span) bool {
	return j.opt.Leased && x.s <= y.s && y.e < x.e && j.leaseEnd(&j.attempts[x.at]) <= y.s && clash(x, y, certain)
}

// maxClassified bounds the pairs that are looked at one by one only to give
// them a finer name.
const maxClassified = 1 << 20

// zombies counts the zombies among the proved clashing pairs. Of a lock so
// broken that there are more than maxClassified all count as double holds.
func (j *judgement) zombies(spans []span, proved int64) int64 {
	if !j.opt.Leased || proved == 0 || proved > maxClassified {
		return 0
	}
	var n int64
	sortSpans(spans, observed)
	meeting(spans, func(y, x span) bool {
		if j.zombie(y, x) {
			n++
		}
		return true
	})
	return n
}

// answers looks for a breach within one attempt.
func (j *judgement) answers(key uint32, i int32) {
	a := &j.attempts[i]
	if a.malformed || a.also {
		return
	}
	grant := j.calls[a.acquire]
	// Nothing succeeds any more once the attempt's lock is over; an unknown
	// acquire may have had its effect after it was found to have left nothing.
	for _, end := range []int32{a.over, a.gone} {
		if end == none || a.proof == none || end == a.gone && !a.held(j.calls) {
			continue
		}
		if late := &j.calls[a.proof]; late.Seq > j.calls[end].Seq && late.Invoke >= returned(&j.calls[end]) {
			j.breach(ZombieSuccess, key, grant, j.calls[end], j.calls[a.proof])
			break
		}
	}
	if !a.held(j.calls) {
		return
	}
	if a.vague || !j.lostUnsent(a) || !j.unbroken(a, a.lostAnswer) {
		return
	}
	answer := j.calls[a.lostAnswer]
	if !j.opt.Leased {
		// A mutex whose client was told first may be gone; one that is merely
		// missing when it is released was not kept.
		if a.toldLost == none || before(j.calls, a.lostAnswer, a.toldLost) {
			j.breach(LostLock, key, grant, answer)
		}
		return
	}
	if a.lastExtend > answer.Invoke {
		return // it was not lost after all, which is a breach above
	}
	if until := j.leaseTime(a); until > 0 && returned(&answer) < until {
		j.breach(LostLock, key, grant, answer)
	}
}

func (j *judgement) breach(class Class, key uint32, calls ...history.Call) {
	j.rep.Breaches[class]++
	last := calls[len(calls)-1]
	j.keep(Witness{Class: class, Key: key, Calls: calls, From: calls[0].Return, To: last.Return})
}

// busy counts the "busy" answers that no proved hold explains. One that meets
// a proved hold fits every order of the grants; of the others the rules here
// say nothing: an unknown acquire or a lease that nobody renewed may have been
// in the way.
func (j *judgement) busy(key uint32, first, last int32, proved []span) {
	var cores []span
	sorted := false
	for i := first; i < last; i++ {
		a := &j.attempts[i]
		if a.malformed || j.calls[a.acquire].Outcome != history.Busy {
			continue
		}
		if !sorted {
			sorted = true
			for _, x := range proved {
				if x.start(certain) <= x.end(certain) {
					cores = append(cores, x)
				}
			}
			sortSpans(cores, certain)
			// The furthest end so far is all that matters: let each core carry
			// it, so that one search answers.
			for k := 1; k < len(cores); k++ {
				if prev := cores[k-1].end(certain); prev > cores[k].end(certain) {
					cores[k].e = prev + cores[k].u
				}
			}
		}
		call := &j.calls[a.acquire]
		u := j.uncertainty(a.client)
		k, _ := slices.BinarySearchFunc(cores, returned(call)-u, func(x span, t int64) int {
			if x.start(certain) <= t {
				return -1
			}
			return cmp.Compare(x.start(certain), t)
		})
		if k == 0 || cores[k-1].end(certain) < call.Invoke+u {
			j.rep.Undecided++
		}
	}
}
