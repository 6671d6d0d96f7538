package checker

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// forever stands for the return of a call that has none. It leaves room for
// adding a clock's uncertainty.
const forever = math.MaxInt64 / 4

// attempt is everything the history says of one attempt to acquire, folded.
// Indices point into the history's calls; none means that there is no such
// call.
type attempt struct {
	id     history.Attempt
	key    uint32
	client uint32

	acquire      int32 // the acquire or try
	firstRelease int32 // the first release or clean-up, whatever came of it
	firstSent    int32 // the first of those that may have had an effect
	lost         int32 // the first sign of loss that the client observed
	toldLost     int32 // the first sign of loss that the lock itself gave, apart from answers
	lostAnswer   int32 // the first release or renewal answered "lost"
	proof        int32 // the confirmed release or renewal that was sent last

	lastExtend int64 // when the last confirmed renewal was sent; 0: none
	confirmed  int64 // the first return of a confirmed release or renewal
	last       int64 // the last stamp of any of its calls
	over       int32 // the confirmed release that returned first
	gone       int32 // the lost answer or confirmed clean-up that returned first
	malformed  bool

	shared bool // for reading: it excludes only attempts that are not
	also   bool // the copy of a batch's attempt that stands for a further key
	inner  bool // of a re-entrant lock: lies within another of its client's holds
	vague  bool // of a re-entrant lock: how often its client holds is not certain
}

const none = int32(-1)

// fold gathers the calls of each attempt, in any order of calls.
func fold(calls []history.Call) []attempt {
	index := make(map[history.Attempt]int32, len(calls)/2)
	attempts := make([]attempt, 0, len(calls)/2)
	var further []int32 // keys of batches
	for i := range calls {
		c := &calls[i]
		switch c.Kind {
		case history.KindAlso:
			further = append(further, int32(i))
			continue
		case history.KindAcquire, history.KindTry, history.KindRelease, history.KindCleanup, history.KindExtend, history.KindLost:
		default:
			continue
		}
		at, ok := index[c.Attempt]
		if !ok {
			at = int32(len(attempts))
			index[c.Attempt] = at
			attempts = append(attempts, attempt{
				id: c.Attempt, key: c.Key, client: c.Client,
				acquire: none, firstRelease: none, firstSent: none, lost: none, toldLost: none, lostAnswer: none, proof: none, over: none, gone: none,
				confirmed: forever,
			})
		}
		attempts[at].add(calls, int32(i))
	}
	for i := range attempts {
		attempts[i].judge(calls)
	}
	return copyBatches(attempts, calls, further, index)
}

// copyBatches adds, for each further key of a batch, a copy of its attempt:
// all calls of the attempt are about that key too. Batches are all or none, so
// that each key may be judged by itself.
func copyBatches(attempts []attempt, calls []history.Call, further []int32, index map[history.Attempt]int32) []attempt {
	type copied struct {
		at  int32
		key uint32
	}
	seen := map[copied]bool{}
	for _, i := range further {
		at, ok := index[calls[i].Attempt]
		if !ok {
			continue // the client came no further
		}
		one := copied{at, calls[i].Key}
		if one.key == attempts[at].key || seen[one] {
			continue
		}
		seen[one] = true
		a := attempts[at]
		a.key, a.also = one.key, true
		attempts = append(attempts, a)
	}
	return attempts
}

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
	if c.Key != a.key || c.Client != a.client || c.Attempt.IsZero() {
		a.malformed = true
		return
	}
	a.last = max(a.last, c.Invoke, c.Return)
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
		a.acquire = i
		a.shared = c.Flags&history.FlagShared != 0
	case history.KindRelease, history.KindCleanup:
		first(&a.firstRelease)
		if c.Outcome != history.Failed {
			first(&a.firstSent)
		}
		switch {
		case c.Outcome == history.Lost:
			first(&a.lostAnswer)
			earliest(&a.gone, calls, i)
		case c.Outcome == history.Released && c.Kind == history.KindRelease:
			earliest(&a.over, calls, i)
			a.confirm(calls, i)
		case c.Outcome == history.Released:
			// A clean-up that was confirmed proves no hold: it may have
			// removed a place in a queue. It does prove that nothing is left.
			earliest(&a.gone, calls, i)
		}
	case history.KindExtend:
		switch c.Outcome {
		case history.Extended:
			a.lastExtend = max(a.lastExtend, c.Invoke)
			a.confirm(calls, i)
		case history.Lost:
			first(&a.lostAnswer)
			earliest(&a.gone, calls, i)
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
	a.confirmed = min(a.confirmed, calls[i].Return)
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

// record is a history made ready for the rules.
type record struct {
	calls    []history.Call
	attempts []attempt // by (key, acquire's invoke)
	clients  map[uint32]*client
	damaged  bool
	end      int64 // the last stamp
}

type client struct {
	stream history.Stream
	sealed bool
	last   int64 // its last stamp, or its death
	runs   []run // of unbroken sequence numbers; only if the history is damaged
}

// run is a stretch of a client's records in which none is missing.
type run struct {
	first, last uint32 // sequence numbers
	end         int64  // the last stamp in it
}

func newRecord(h *history.History, o Options) *record {
	r := &record{calls: h.Calls, attempts: fold(h.Calls), clients: map[uint32]*client{}, damaged: len(h.Damage) > 0}
	for _, s := range h.Streams {
		r.clients[s.Client] = &client{stream: s, sealed: s.Sealed && !r.damaged}
	}
	for i := range h.Calls {
		c := &h.Calls[i]
		cl := r.clients[c.Client]
		if cl == nil {
			cl = &client{stream: history.Stream{Client: c.Client, Worker: c.Client}}
			r.clients[c.Client] = cl
		}
		cl.last = max(cl.last, c.Invoke, c.Return)
		r.end = max(r.end, cl.last)
	}
	for _, cl := range r.clients {
		if cl.sealed {
			cl.last = max(cl.last, cl.stream.SealedAt)
			r.end = max(r.end, cl.last)
		}
	}
	for _, d := range o.Died {
		if cl := r.clients[d.Client]; cl != nil && !cl.sealed {
			cl.last = max(cl.last, d.At)
		}
	}
	if r.damaged {
		r.findRuns()
	}
	r.sortAttempts()
	if o.Reentrant {
		r.nest()
	}
	return r
}

// sortAttempts puts the attempts by (key, acquire's invoke). They are dealt out
// by key first: within a key they mostly are in order already.
func (r *record) sortAttempts() {
	first := map[uint32]int{}
	for i := range r.attempts {
		first[r.attempts[i].key]++
	}
	next := 0
	for _, key := range slices.Sorted(maps.Keys(first)) {
		n := first[key]
		first[key] = next
		next += n
	}
	dealt := make([]attempt, len(r.attempts))
	for i := range r.attempts {
		a := &r.attempts[i]
		dealt[first[a.key]] = *a
		first[a.key]++
	}
	r.attempts = dealt
	calls := r.calls
	compare := func(a, b attempt) int {
		if a.malformed || b.malformed {
			return cmp.Or(boolCompare(a.malformed, b.malformed), compareIDs(a.id, b.id))
		}
		x, y := &calls[a.acquire], &calls[b.acquire]
		return cmp.Or(cmp.Compare(x.Invoke, y.Invoke), cmp.Compare(x.Client, y.Client), cmp.Compare(x.Seq, y.Seq), compareIDs(a.id, b.id))
	}
	for i := 0; i < len(dealt); {
		end := first[dealt[i].key] // of this key's part, now that all are dealt
		slices.SortFunc(dealt[i:end], compare)
		i = end
	}
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

func (r *record) findRuns() {
	order := make([]int32, len(r.calls))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int {
		a, b := &r.calls[i], &r.calls[j]
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Seq, b.Seq))
	})
	for _, i := range order {
		c := &r.calls[i]
		cl := r.clients[c.Client]
		stamp := max(c.Invoke, c.Return)
		if n := len(cl.runs); n > 0 && c.Seq == cl.runs[n-1].last+1 {
			cl.runs[n-1].last = c.Seq
			cl.runs[n-1].end = max(cl.runs[n-1].end, stamp)
			continue
		}
		cl.runs = append(cl.runs, run{first: c.Seq, last: c.Seq, end: stamp})
	}
}

// runOf is the run that a's grant lies in, as every call lies in one; only for
// damaged histories.
func (r *record) runOf(a *attempt) run {
	seq := r.calls[a.acquire].Seq
	runs := r.clients[a.client].runs
	i, _ := slices.BinarySearchFunc(runs, seq, func(x run, seq uint32) int {
		switch {
		case x.last < seq:
			return -1
		case x.first > seq:
			return 1
		}
		return 0
	})
	return runs[i]
}

// unbroken reports whether every record between a's grant and call i was
// readable.
func (r *record) unbroken(a *attempt, i int32) bool {
	return !r.damaged || r.calls[i].Seq <= r.runOf(a).last
}

func (r *record) uncertainty(client uint32) int64 { return r.clients[client].stream.ClockUncertainty }

// returned is when c returned, or forever.
func returned(c *history.Call) int64 {
	if c.Outcome == history.Open || c.Return < c.Invoke {
		return forever
	}
	return c.Return
}

// ended is when the client stopped waiting for c: at its return, or with its
// own end.
func (r *record) ended(c *history.Call) int64 {
	if t := returned(c); t != forever {
		return t
	}
	return max(c.Invoke, r.clients[c.Client].last)
}
