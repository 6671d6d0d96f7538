package checker

import (
	"maps"
	"slices"
	"time"

	"github.com/lockbench/lockbench/history"
)

// Watch judges a history while it is written, by the rules of Check, so that a
// violation shows within a second and not at the end of a long run.
//
// A history that broke the lock's word up to some moment broke it whatever comes
// later. So each Settle judges what had happened by a moment up to which no record
// is missing; calls that had not returned by then are open. Of each key it keeps
// only the attempts on which something may still depend: those under way, those
// that may have the lock for all that is known, and those that may explain a try
// which is still to be judged.
//
// What it tells Check finds too, at the end, in the same attempts. There are three
// exceptions, in all of which the lock did break its word on that key. Where grants
// contradict one another, where too many outcomes are unknown, or where readers come
// for the first time, Check judges the key's refused tries and tokens by coarser
// rules, also the earlier ones, and may show a contradiction that takes more than
// two grants by others of them. Of two refused tries that one unknown acquire can
// explain only one, it may choose the other. And a pair that only the lease's time
// accuses may get a graver name when later answers are there.
//
// What cannot be known before the end is left to Check:
//
//   - that a lock without a lease was held twice, by the client's view of a hold
//     alone: as long as no release is confirmed its client may yet be told of a loss
//     that lies in the past. Until then there is an overlap;
//   - updates that a register lost without two accepted writes that show it, as where
//     the outcome of one of them is unknown;
//   - what a late answer says of an attempt whose client has gone on since;
//   - refusals on a key with some sixty attempts or more of which nobody knows
//     whether they still have the lock, and those after grants contradicted one
//     another;
//   - whatever the clocks leave in doubt: all clients' stamps are taken to be as
//     uncertain as the worst, also within a process.
//
// A client that was stopped between taking a stamp and writing it down shows what it
// did only when it goes on; until then it is taken not to have done it.
//
// It is fed calls as they begin and as they return, those of one client in order,
// and settles from time to time. It is for one goroutine.
type Watch struct {
	opt       Options
	judge     *Judge
	clients   map[uint32]*watchedClient
	attempts  map[history.Attempt]*watchedAttempt
	keys      map[uint32]*watchedKey
	restless  map[uint32]*watchedKey // those of which something is open, or not judged yet
	registers map[registerOf]*watchedRegister
	now       moment
	scratch   history.Call
}

// moment is how far the history is known.
type moment struct {
	through int64 // no record up to it is missing
	tries   int64 // up to it none is that clocks could set before a try
	doubt   int64 // the clocks' uncertainty
}

type watchedClient struct {
	*client
	seen   int64           // the last stamp of its records
	latest history.Attempt // the last that it began
	dead   bool
	died   int64 // by then it was
}

// watchedAttempt is what is known of an attempt, as long as it matters.
type watchedAttempt struct {
	id     history.Attempt
	client uint32
	keys   []uint32
	calls  []history.Call // as far as they were read
	begun  bool           // its acquire is among them
	busy   int64          // when it was refused; 0: it was not
	proved bool           // the lock confirmed that it held
	kept   int            // by so many of its keys

	// What the last judging of a key made of it; nil if nothing.
	folded *attempt
	place  int32
}

// NewWatch judges a lock by what the options say of its promise. Of what they say
// of a run it asks for the End and for what is known of pauses before it begins.
func NewWatch(o Options) *Watch {
	told := o
	told.MaxWitnesses = 2 * o.maxWitnesses() // half of them may have been told
	return &Watch{
		opt: o, judge: NewSurvey(nil, nil).Judge(told),
		clients: map[uint32]*watchedClient{}, attempts: map[history.Attempt]*watchedAttempt{},
		keys: map[uint32]*watchedKey{}, restless: map[uint32]*watchedKey{}, registers: map[registerOf]*watchedRegister{},
	}
}

// Add takes note of a call that has begun, or has returned.
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
		// As of different processes, stamps compare only as exactly as clocks do.
		cl = &watchedClient{client: &client{stream: history.Stream{Client: number, Worker: number}}}
		w.clients[number] = cl
		w.judge.clients.add(number, cl.client)
	}
	return cl
}

// note takes note of a call about the lock.
func (w *Watch) note(cl *watchedClient, c *history.Call) {
	a := w.attempts[c.Attempt]
	begins := c.Kind == history.KindAcquire || c.Kind == history.KindTry
	if a == nil {
		if !begins && c.Kind != history.KindAlso || c.Attempt.IsZero() {
			return // it was forgotten
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
			k.newest, k.stirred = max(k.newest, c.Invoke, c.Return), true
			w.restless[number] = k
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

// put takes over a call, or what it came to.
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

// Died tells that a client's process is gone, as a look at the moment given
// shows; when exactly it went is not known.
func (w *Watch) Died(client uint32, at int64) {
	if cl := w.client(client); !cl.dead {
		cl.dead, cl.died = true, at
		for _, k := range w.keys {
			if slices.ContainsFunc(k.attempts, func(a *watchedAttempt) bool { return a.client == client }) {
				k.stirred = true
				w.restless[k.number] = k
			}
		}
	}
}

// Settle judges what happened until the stamp through, up to which every record
// must have been added, and returns what was not told before: of each key the
// first few violations of each class. No client's clock is off by more than
// doubt.
func (w *Watch) Settle(through int64, doubt time.Duration) []Witness {
	w.now.doubt = max(w.now.doubt, int64(doubt))
	w.now.through, w.now.tries = through, through-2*w.now.doubt
	for _, cl := range w.clients {
		cl.stream.ClockUncertainty = w.now.doubt
		// Whoever lives will record whatever comes later than that; and whoever
		// died did so after its last record.
		cl.last = through + 1
		if cl.dead {
			cl.last = min(cl.last, cl.seen+1)
		}
	}
	w.judge.end = through
	var found []Witness
	for _, number := range slices.Sorted(maps.Keys(w.restless)) {
		k := w.restless[number]
		if k.stirred || k.newest > k.judged || w.opt.Takeover > 0 {
			found = append(found, w.look(k)...)
		}
	}
	return append(found, w.account()...)
}
