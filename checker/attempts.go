package checker

import (
	"math"

	"github.com/lockbench/lockbench/history"
)

// forever stands for the missing return of a call, with room for adding a
// clock's uncertainty.
const forever = math.MaxInt64 / 4

// attempt sums up all calls of one attempt to acquire. Numbers are indexes of
// the part's calls; none means that there is no such call.
type attempt struct {
	client, key   uint32 // of its first call
	any           int32  // its first call
	acquire       int32  // the acquire or try
	since         int32  // the acquire with which the hold may have begun; of a re-entrant lock perhaps an earlier one
	firstRelease  int32  // the first release or clean-up, whatever its outcome
	firstSent     int32  // the first of those that may have had an effect
	lost          int32  // the first loss that the client observed
	signalledLost int32  // the first loss that the lock itself signalled, apart from answers
	lostAnswer    int32  // the first release or renewal answered "lost"
	proof         int32  // the confirmed release or renewal that was sent last
	confirmed     int32  // the confirmed release or renewal that returned first
	lastExtend    int32  // the confirmed renewal that was sent last
	last          int32  // the call that ended last
	over          int32  // the confirmed release that returned first
	gone          int32  // the lost answer or confirmed clean-up that returned first
	cleaned       int32  // the confirmed clean-up that returned first
	absent        int32  // the lost answer whose call was sent last
	leaseEnd      int64  // until which its client relied on it; 0: not recorded, endUnknown: renewed
	grantEnd      int64  // the same, by the acquire's answer; 0: not recorded

	releaseUnknown bool // the outcome of a release or clean-up is unknown
	malformed      bool
	contradicted   bool // its acquire returned failed or busy, and a later answer proves a hold
	shared         bool // for reading: it conflicts only with attempts that are not
	batch          bool // it covers several keys
	also           bool // and this key is not its first
	inner          bool // of a re-entrant lock: within another hold of its client
	countUncertain bool // of a re-entrant lock: the client's hold count is not certain
}

const none = int32(-1)

// fold builds the part's attempts, sorted by invoke. Attempts of other keys and
// attempts whose records contradict one another are left out.
func (p *part) fold(gathered *chunkedList[attempt], further map[history.Attempt]bool) {
	order := make([]timed, 0, gathered.len())
	for i := range gathered.len() {
		a := gathered.at(i)
		a.batch = len(p.batches) > 0 && p.batches[p.id(a)]
		a.also = a.batch && further[p.id(a)] && a.key != p.key
		if a.key != p.key && !a.also {
			continue // a call of a batch that does not cover this key
		}
		p.sharing = p.sharing || a.shared // a malformed reader may have held too
		if a.judge(p.calls); !a.malformed {
			order = append(order, timed{p.calls[a.acquire].Invoke, i})
			continue
		}
		if !a.also {
			p.rep.Malformed++
		}
	}
	sortTimed(order, func(i, j int32) int { return p.inTime(gathered.at(i).acquire, gathered.at(j).acquire) })
	p.attempts = make([]attempt, len(order))
	for i, x := range order {
		p.attempts[i] = *gathered.at(x.number)
	}
}

func (p *part) client(a *attempt) uint32 { return a.client }

func (p *part) id(a *attempt) history.Attempt { return *p.ids.at(p.calls[a.any].attempt) }

// before orders the calls of one client.
func before(calls []call, i, j int32) bool {
	return j == none || compareCalls(&calls[i], &calls[j]) < 0
}

// newAttempt starts an attempt with call i, which add must still be called for.
func newAttempt(calls []call, i int32, key uint32) attempt {
	return attempt{
		client: calls[i].Client, key: key,
		any: i, acquire: none, since: none, firstRelease: none, firstSent: none, lost: none, signalledLost: none, lostAnswer: none,
		proof: none, confirmed: none, lastExtend: none, last: none, over: none, gone: none, cleaned: none, absent: none,
	}
}

// add adds call i of a key. Calls come in any order.
func (a *attempt) add(calls []call, i int32, key uint32) {
	c := &calls[i]
	if key != a.key || c.Client != a.client {
		a.malformed = true
	}
	if before(calls, i, a.any) {
		a.any, a.client, a.key = i, c.Client, key
	}
	if c.Kind == history.KindAcquire || c.Kind == history.KindTry {
		a.shared = a.shared || c.Flags&history.FlagShared != 0
	}
	if a.malformed {
		return
	}
	if a.last == none || max(c.Invoke, c.Return) > max(calls[a.last].Invoke, calls[a.last].Return) {
		a.last = i
	}
	first := func(p *int32) {
		if before(calls, i, *p) {
			*p = i
		}
	}
	switch c.Kind {
	case history.KindAcquire, history.KindTry:
		if a.acquire != none {
			a.malformed = true
		}
		a.acquire, a.since = i, i
	case history.KindRelease, history.KindCleanup:
		first(&a.firstRelease)
		if c.Outcome != history.Failed {
			first(&a.firstSent)
		}
		switch {
		case c.Outcome == history.Lost:
			a.missing(calls, i)
		case c.Outcome == history.Released && c.Kind == history.KindRelease:
			earliest(&a.over, calls, i)
			a.confirm(calls, i)
		case c.Outcome == history.Released:
			// A confirmed clean-up proves no hold, since it may have removed a
			// place in a queue. It proves that nothing is left.
			earliest(&a.gone, calls, i)
			earliest(&a.cleaned, calls, i)
		case c.Outcome != history.Failed:
			a.releaseUnknown = true
		}
	case history.KindExtend:
		switch c.Outcome {
		case history.Extended:
			if a.lastExtend == none || before(calls, a.lastExtend, i) {
				a.lastExtend = i
			}
			a.confirm(calls, i)
		case history.Lost:
			a.missing(calls, i)
			// The client knows it when the answer has arrived.
			a.loss(calls, i)
		}
	case history.KindLost:
		a.loss(calls, i)
		if c.Flags&history.FlagLeaseTimer == 0 {
			first(&a.signalledLost)
		}
	}
}

// endUnknown is the end of a lease that was renewed, by the recipe itself, without
// a record of its new end.
const endUnknown = int64(-1)

// lease takes the end of the lease from a grant or a renewal. Calls come in any order.
func (a *attempt) lease(o history.Outcome, end int64) {
	if o == history.Held {
		a.grantEnd = end
	}
	switch {
	case o != history.Held && o != history.Extended || a.leaseEnd == endUnknown:
	case end != 0:
		a.leaseEnd = max(a.leaseEnd, end)
	case o == history.Extended:
		a.leaseEnd = endUnknown
	}
}

// loss records call i, which showed the client its loss.
func (a *attempt) loss(calls []call, i int32) {
	if a.lost == none {
		a.lost = i
		return
	}
	at, was := lossSeen(&calls[i]), lossSeen(&calls[a.lost])
	if at < was || at == was && before(calls, i, a.lost) {
		a.lost = i
	}
}

// missing records call i, which found the attempt's lock gone.
func (a *attempt) missing(calls []call, i int32) {
	if before(calls, i, a.lostAnswer) {
		a.lostAnswer = i
	}
	if a.absent == none || before(calls, a.absent, i) {
		a.absent = i
	}
	earliest(&a.gone, calls, i)
}

// earliest keeps the call that returned first in p.
func earliest(p *int32, calls []call, i int32) {
	if *p == none || calls[i].Return < calls[*p].Return || calls[i].Return == calls[*p].Return && before(calls, i, *p) {
		*p = i
	}
}

// lossSeen is when the client knew of the loss that c shows.
func lossSeen(c *call) int64 {
	if c.Kind == history.KindExtend {
		return c.Return
	}
	return c.Invoke
}

func (a *attempt) confirm(calls []call, i int32) {
	if a.proof == none || before(calls, a.proof, i) {
		a.proof = i
	}
	earliest(&a.confirmed, calls, i)
}

// judge detects contradicting records. Afterwards the acquire exists, and is
// earlier than the other calls.
func (a *attempt) judge(calls []call) {
	if a.acquire == none {
		a.malformed = true
	}
	if a.malformed {
		return
	}
	c := &calls[a.acquire]
	for _, i := range []int32{a.firstRelease, a.lost, a.proof} {
		if i != none && calls[i].Invoke < c.Invoke {
			a.malformed = true
		}
	}
	definite := c.Outcome == history.Failed || c.Outcome == history.Busy
	a.contradicted = definite && a.proof != none
	if c.Outcome == history.Held && c.Return < c.Invoke {
		a.malformed = true
	}
}

// granted reports whether the acquire got the lock.
func (a *attempt) granted(calls []call) bool { return calls[a.acquire].Outcome == history.Held }

// held reports whether the attempt is a hold of its own.
func (a *attempt) held(calls []call) bool { return a.granted(calls) && !a.inner }

// holding reports whether its client knew that it holds: by the acquire's answer, or
// by a renewal that was confirmed later.
func (a *attempt) holding(calls []call) bool {
	return a.held(calls) || !a.inner && a.unknown(calls) && a.confirmed != none && calls[a.confirmed].Kind == history.KindExtend
}

// unknown reports whether the acquire may have got the lock without its client
// knowing.
func (a *attempt) unknown(calls []call) bool {
	o := calls[a.acquire].Outcome
	return o != history.Held && o != history.Busy && o != history.Failed || a.contradicted
}

// span is the time from start to end of attempt i.
func (p *part) span(i int32, start, end int64) span {
	a := &p.attempts[i]
	s := &p.clients.of(p.client(a)).stream
	return span{s: start, e: end, u: s.ClockUncertainty, worker: s.Worker, shared: a.shared, at: i}
}

// unbroken reports whether every record between a's grant and call i was
// readable.
func (p *part) unbroken(a *attempt, i int32) bool {
	return p.damage == 0 || p.calls[i].Seq <= p.runOf(a).last
}

// runOf returns the run that contains a's grant; only for damaged histories.
func (p *part) runOf(a *attempt) run {
	return p.clients.of(p.client(a)).runAt(p.calls[a.acquire].Seq)
}

// stamp is the last stamp of call i.
func (p *part) stamp(i int32) int64 { return max(p.calls[i].Invoke, p.calls[i].Return) }

func (p *part) uncertainty(client uint32) int64 { return p.clients.of(client).stream.ClockUncertainty }

// returned is when c returned, or forever.
func returned(c *call) int64 {
	if c.Outcome == history.Open || c.Return < c.Invoke {
		return forever
	}
	return c.Return
}

// ended is when the client stopped waiting for c: when it returned, or when the
// client itself ended.
func (p *part) ended(c *call) int64 {
	if t := returned(c); t != forever {
		return t
	}
	return max(c.Invoke, p.clients.of(c.Client).last)
}
