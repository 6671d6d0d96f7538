package checker

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// forever stands for the return of a call that has none. It leaves room for
// adding a clock's uncertainty.
const forever = math.MaxInt64 / 4

// attempt is everything the history says of one attempt to acquire, folded.
// Numbers point into the part's calls; none means that there is no such call.
type attempt struct {
	any          int32 // one of its calls
	acquire      int32 // the acquire or try
	since        int32 // the acquire by which it may have begun; of a re-entrant lock, perhaps an earlier one
	firstRelease int32 // the first release or clean-up, whatever came of it
	firstSent    int32 // the first of those that may have had an effect
	lost         int32 // the first sign of loss that the client observed
	toldLost     int32 // the first sign of loss that the lock itself gave, apart from answers
	lostAnswer   int32 // the first release or renewal answered "lost"
	proof        int32 // the confirmed release or renewal that was sent last
	confirmed    int32 // the one that returned first
	lastExtend   int32 // the confirmed renewal that was sent last
	last         int32 // the call that ended last
	over         int32 // the confirmed release that returned first
	gone         int32 // the lost answer or confirmed clean-up that returned first
	cleaned      int32 // the confirmed clean-up that returned first
	absent       int32 // the lost answer whose call was sent last

	unsaid    bool // the outcome of a release or clean-up is unknown
	malformed bool
	shared    bool // for reading: it excludes only attempts that are not
	batch     bool // it is about several keys
	also      bool // and this one is not its first
	inner     bool // of a re-entrant lock: lies within another of its client's holds
	vague     bool // of a re-entrant lock: how often its client holds is not certain
}

const none = int32(-1)

// fold gathers the calls of each attempt, given in any order, and puts the
// attempts by their acquire's invoke.
func (p *part) fold(of []int32) {
	calls := p.calls
	asked := 0
	for _, i := range of {
		if k := calls[i].Kind; k == history.KindAcquire || k == history.KindTry {
			asked++
		}
	}
	index := make(map[history.Attempt]int32, asked)
	p.attempts = make([]attempt, 0, asked)
	further := map[history.Attempt]bool{} // batches of which this key is a further one
	for _, i := range of {
		c := &calls[i]
		switch c.Kind {
		case history.KindRead, history.KindWrite, history.KindFinal:
			if c.Key == p.key {
				p.guarded = append(p.guarded, i)
			}
			continue
		case history.KindAlso:
			if c.Key == p.key {
				further[c.Attempt] = true
			}
			continue
		case history.KindAcquire, history.KindTry, history.KindRelease, history.KindCleanup, history.KindExtend, history.KindLost:
		default: // a place in a queue grants nothing
			continue
		}
		at, ok := index[c.Attempt]
		if !ok {
			at = int32(len(p.attempts))
			index[c.Attempt] = at
			p.attempts = append(p.attempts, attempt{
				any: i, acquire: none, since: none, firstRelease: none, firstSent: none, lost: none, toldLost: none, lostAnswer: none,
				proof: none, confirmed: none, lastExtend: none, last: none, over: none, gone: none, cleaned: none, absent: none,
			})
		}
		p.attempts[at].add(calls, i)
	}
	kept := p.attempts[:0]
	for _, a := range p.attempts {
		a.batch = len(p.batches) > 0 && p.batches[p.id(&a)]
		a.also = a.batch && further[p.id(&a)] && calls[a.any].Key != p.key
		if calls[a.any].Key != p.key && !a.also {
			continue // a batch's calls came along that is not about this key
		}
		a.judge(calls)
		kept = append(kept, a)
	}
	p.attempts = kept
	slices.SortFunc(p.attempts, func(a, b attempt) int {
		if a.malformed || b.malformed {
			return cmp.Or(boolCompare(a.malformed, b.malformed), compareIDs(calls[a.any].Attempt, calls[b.any].Attempt))
		}
		return inTime(&calls[a.acquire], &calls[b.acquire])
	})
}

func (p *part) client(a *attempt) uint32 { return p.calls[a.any].Client }

func (p *part) id(a *attempt) history.Attempt { return p.calls[a.any].Attempt }

// inTime orders calls by their invoke. Only calls that are alike are equal, so
// that even of a record that cannot be the same is said in whatever order it
// comes.
func inTime(a, b *history.Call) int {
	if a.Invoke != b.Invoke {
		return cmp.Compare(a.Invoke, b.Invoke)
	}
	if a.Client != b.Client || a.Seq != b.Seq {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Seq, b.Seq))
	}
	return cmp.Or(compareIDs(a.Attempt, b.Attempt), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Return, b.Return), cmp.Compare(a.Outcome, b.Outcome),
		cmp.Compare(a.Flags, b.Flags), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Fence, b.Fence), cmp.Compare(a.Arg, b.Arg), cmp.Compare(a.Value, b.Value))
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

func compareIDs(a, b history.Attempt) int { return slices.Compare(a[:], b[:]) }

// before orders the calls of one client.
func before(calls []history.Call, i, j int32) bool {
	if j == none {
		return true
	}
	if calls[i].Invoke != calls[j].Invoke {
		return calls[i].Invoke < calls[j].Invoke
	}
	return calls[i].Seq < calls[j].Seq
}

func (a *attempt) add(calls []history.Call, i int32) {
	c := &calls[i]
	if one := &calls[a.any]; c.Key != one.Key || c.Client != one.Client || c.Attempt.IsZero() {
		a.malformed = true
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
		a.shared = c.Flags&history.FlagShared != 0
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
			// A clean-up that was confirmed proves no hold: it may have
			// removed a place in a queue. It does prove that nothing is left.
			earliest(&a.gone, calls, i)
			earliest(&a.cleaned, calls, i)
		case c.Outcome != history.Failed:
			a.unsaid = true
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
			// The client learns it when the answer is there.
			if a.lost == none || c.Return < lossSeen(&calls[a.lost]) {
				a.lost = i
			}
		}
	case history.KindLost:
		if a.lost == none || c.Invoke < lossSeen(&calls[a.lost]) {
			a.lost = i
		}
		if c.Flags&history.FlagLeaseTimer == 0 {
			first(&a.toldLost)
		}
	}
}

// missing takes note of call i, which found the attempt's lock gone.
func (a *attempt) missing(calls []history.Call, i int32) {
	if before(calls, i, a.lostAnswer) {
		a.lostAnswer = i
	}
	if a.absent == none || before(calls, a.absent, i) {
		a.absent = i
	}
	earliest(&a.gone, calls, i)
}

// earliest keeps in p the call that returned first.
func earliest(p *int32, calls []history.Call, i int32) {
	if *p == none || calls[i].Return < calls[*p].Return || calls[i].Return == calls[*p].Return && calls[i].Seq < calls[*p].Seq {
		*p = i
	}
}

// lossSeen is when the client knew of the loss that c tells.
func lossSeen(c *history.Call) int64 {
	if c.Kind == history.KindExtend {
		return c.Return
	}
	return c.Invoke
}

func (a *attempt) confirm(calls []history.Call, i int32) {
	if a.proof == none || before(calls, a.proof, i) {
		a.proof = i
	}
	earliest(&a.confirmed, calls, i)
}

// judge finds what cannot be: whoever reads the attempt may then rely on its
// acquire being there, and before the rest.
func (a *attempt) judge(calls []history.Call) {
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
	if definite && a.proof != none || c.Outcome == history.Held && c.Return < c.Invoke {
		a.malformed = true
	}
}

// granted: the acquire got the lock.
func (a *attempt) granted(calls []history.Call) bool {
	return !a.malformed && calls[a.acquire].Outcome == history.Held
}

// held: the attempt makes a hold of its own.
func (a *attempt) held(calls []history.Call) bool { return a.granted(calls) && !a.inner }

// unknown: the acquire may have got the lock without anybody knowing.
func (a *attempt) unknown(calls []history.Call) bool {
	if a.malformed {
		return false
	}
	o := calls[a.acquire].Outcome
	return o != history.Held && o != history.Busy && o != history.Failed
}

// span is the stretch from start to end, of attempt i.
func (p *part) span(i int32, start, end int64) span {
	a := &p.attempts[i]
	s := &p.clients[p.client(a)].stream
	return span{s: start, e: end, u: s.ClockUncertainty, worker: s.Worker, shared: a.shared, at: i}
}

// unbroken reports whether every record between a's grant and call i was
// readable.
func (p *part) unbroken(a *attempt, i int32) bool {
	return p.damage == 0 || p.calls[i].Seq <= p.runOf(a).last
}

// runOf is the run that a's grant lies in; only for damaged histories.
func (p *part) runOf(a *attempt) run {
	return p.clients[p.client(a)].runAt(p.calls[a.acquire].Seq)
}

// stamp is the last stamp of call i.
func (p *part) stamp(i int32) int64 { return max(p.calls[i].Invoke, p.calls[i].Return) }

func (p *part) uncertainty(client uint32) int64 { return p.clients[client].stream.ClockUncertainty }

// returned is when c returned, or forever.
func returned(c *history.Call) int64 {
	if c.Outcome == history.Open || c.Return < c.Invoke {
		return forever
	}
	return c.Return
}

// ended is when the client stopped waiting for c: at its return, or with its
// own end.
func (p *part) ended(c *history.Call) int64 {
	if t := returned(c); t != forever {
		return t
	}
	return max(c.Invoke, p.clients[c.Client].last)
}
