package checker

import (
	"maps"
	"slices"
	"time"

	"github.com/lockbench/lockbench/history"
)

// Watch judges a history while it is written, by the rules of Check, so that a
// violation is reported within a second and not at the end of a long run.
//
// A guarantee that was broken up to some moment stays broken. So each Settle
// judges the history up to a moment before which no record is missing; calls that
// had not returned by then are open. Of each key it keeps only the attempts that
// can still matter: those under way, those that may still have the lock, and those
// that may explain an unjudged busy try.
//
// Check reports every violation that a Watch reports, in the same attempts,
// with three exceptions, in all of which the lock did break its guarantee on
// that key. After contradicting grants, too many unknown outcomes, or the first
// reader, Check judges the key's busy tries and tokens by coarser rules, also
// the earlier ones, and may report a contradiction of more than two grants in
// others of them. Of two busy tries of which one unknown acquire can explain
// only one, it may report the other. And a pair that only the lease's TTL
// accuses may get another class after later answers.
//
// A Watch does not report:
//
//   - a double hold of a lock without a lease that only the client's view of a
//     hold proves: until a release is confirmed the client may yet observe an
//     earlier loss. It reports an overlap;
//   - lost updates without two accepted writes that prove them, for example if
//     the outcome of one of them is unknown;
//   - violations proved by a late answer to an attempt after its client has
//     begun another;
//   - busy tries on a key with some sixty attempts or more that may still have
//     the lock, and those after contradicting grants;
//   - violations within the clocks' uncertainty: all clients' stamps count as
//     uncertain as the worst, also within a process.
//
// A client that was stopped between taking a stamp and writing the record
// writes it only when it continues; until then its action counts as not done.
//
// Add takes calls when they begin and when they return, those of one client in
// order. It is not safe for concurrent use. and settles from time to time. It
// is for one goroutine.
type Watch struct {
	opt       Options
	judge     *Judge
	clients   map[uint32]*watchedClient
	attempts  map[history.Attempt]*watchedAttempt
	keys      map[uint32]*watchedKey
	pending   map[uint32]*watchedKey // those with open or unjudged calls
	registers map[registerOf]*watchedRegister
	now       moment
	scratch   history.Call
}

// moment is up to when the history is known.
type moment struct {
	through int64 // no record up to it is missing
	tries   int64 // the same, with a margin for the clocks' uncertainty
	doubt   int64 // the clocks' uncertainty
}

type watchedClient struct {
	*client
	seen   int64           // the last stamp of its records
	latest history.Attempt // its newest attempt
	dead   bool
	died   int64 // it was dead at this time
}

// watchedAttempt is what is known of an attempt that still matters.
type watchedAttempt struct {
	id     history.Attempt
	client uint32
	keys   []uint32
	calls  []history.Call // read so far
	begun  bool           // its acquire is among them
	busy   int64          // when its try returned busy; 0: it did not
	proved bool           // the lock confirmed that it held
	kept   int            // the number of its keys that keep it

	// The result of the last judging of a key; nil if none.
	folded *attempt
	place  int32
}

// NewWatch judges a lock by the guarantees in the options. Of their facts about
// a run it uses the End and the pauses known before it begins.
func NewWatch(o Options) *Watch {
	judged := o
	judged.MaxWitnesses = 2 * o.maxWitnesses() // half of them may have been reported
	return &Watch{
		opt: o, judge: NewSurvey(nil, nil).Judge(judged),
		clients: map[uint32]*watchedClient{}, attempts: map[history.Attempt]*watchedAttempt{},
		keys: map[uint32]*watchedKey{}, pending: map[uint32]*watchedKey{}, registers: map[registerOf]*watchedRegister{},
	}
}

// Add adds a call that has begun, or has returned.
func (w *Watch) Add(c *history.Call, returned bool) {
	cl := w.client(c.Client)
	cl.seen = max(cl.seen, c.Invoke, c.Return)
	switch {
	case c.Kind == history.KindAlso, ofLock(c.Kind):
		w.note(cl, c)
	case returned && c.Outcome == history.Accepted && (c.Kind == history.KindWrite || c.Kind == history.KindRead):
		w.register(c)
	}
}

func (w *Watch) client(number uint32) *watchedClient {
	cl := w.clients[number]
	if cl == nil {
		// In processes of their own, so that all stamps compare with the
		// clocks' uncertainty.
		cl = &watchedClient{client: &client{stream: history.Stream{Client: number, Worker: number}}}
		w.clients[number] = cl
		w.judge.clients.add(number, cl.client)
	}
	return cl
}

// note adds a call about the lock.
func (w *Watch) note(cl *watchedClient, c *history.Call) {
	a := w.attempts[c.Attempt]
	begins := c.Kind == history.KindAcquire || c.Kind == history.KindTry
	if a == nil {
		if !begins && c.Kind != history.KindAlso || c.Attempt.IsZero() {
			return // the attempt was dropped
		}
		a = &watchedAttempt{id: c.Attempt, client: c.Client}
		w.attempts[c.Attempt] = a
	}
	a.put(c)
	if c.Kind == history.KindAlso {
		w.judge.batches[a.id] = true
	}
	if (begins || c.Kind == history.KindAlso) && !slices.Contains(a.keys, c.Key) {
		a.keys = append(a.keys, c.Key)
	}
	if begins && !a.begun {
		a.begun = true
		cl.latest = a.id
		for _, number := range a.keys {
			k := w.key(number)
			k.attempts = append(k.attempts, a)
			a.kept++
		}
	}
	if a.begun {
		for _, number := range a.keys {
			k := w.key(number)
			k.newest, k.changed = max(k.newest, c.Invoke, c.Return), true
			w.pending[number] = k
		}
	}
}

func (w *Watch) key(number uint32) *watchedKey {
	k := w.keys[number]
	if k == nil {
		k = &watchedKey{number: number, judged: -forever, free: -forever}
		w.keys[number] = k
	}
	return k
}

// put adds a call, or its result.
func (a *watchedAttempt) put(c *history.Call) {
	switch {
	case c.Kind == history.KindTry && c.Outcome == history.Busy:
		a.busy = c.Return
	case c.Outcome == history.Extended, c.Kind == history.KindRelease && c.Outcome == history.Released:
		a.proved = true
	}
	for i := range a.calls {
		if a.calls[i].Seq == c.Seq {
			a.calls[i] = *c
			return
		}
	}
	a.calls = append(a.calls, *c)
}

// Died records that a client's process was gone at the given time; when it
// ended is not known.
func (w *Watch) Died(client uint32, at int64) {
	if cl := w.client(client); !cl.dead {
		cl.dead, cl.died = true, at
		for _, k := range w.keys {
			if slices.ContainsFunc(k.attempts, func(a *watchedAttempt) bool { return a.client == client }) {
				k.changed = true
				w.pending[k.number] = k
			}
		}
	}
}

// Settle judges the history up to the stamp through, up to which every record
// must have been added, and returns the violations that it has not reported
// before: of each key the first few of each class. No client's clock is off by
// more than doubt.
func (w *Watch) Settle(through int64, doubt time.Duration) []Witness {
	w.now.doubt = max(w.now.doubt, int64(doubt))
	w.now.through, w.now.tries = through, through-2*w.now.doubt
	for _, cl := range w.clients {
		cl.stream.ClockUncertainty = w.now.doubt
		// A live client may still record anything later, and a dead one died
		// after its last record.
		cl.last = through + 1
		if cl.dead {
			cl.last = min(cl.last, cl.seen+1)
		}
	}
	w.judge.end = through
	var found []Witness
	for _, number := range slices.Sorted(maps.Keys(w.pending)) {
		k := w.pending[number]
		if k.changed || k.newest > k.judged || w.opt.Takeover > 0 {
			found = append(found, w.judgeKey(k)...)
		}
	}
	return append(found, w.account()...)
}
