package checker

import (
	"slices"
	"time"

	"github.com/lockbench/lockbench/history"
)

// Watch looks at a history while it is written, so that a violation shows within
// a second and not at the end of a long run. It knows the rules that need no more
// than what is there: two clients hold a key, a token is missing or does not grow,
// a write with an outdated token was accepted, a lock was gone while it was
// certainly its holder's. What only later records prove (a zombie's success, a try
// refused for nothing, what a register lost, a key that is stuck) is Check's. It
// forgets holds that ended a while ago, so a record that comes very late may
// escape it: what counts is what Check says of the whole.
//
// It is fed calls as they begin and as they return, in any order, and settles
// from time to time. It is for one goroutine.
type Watch struct {
	opt     Options
	keys    map[uint32]*watchedKey
	at      map[history.Attempt]*watchedHold
	leaving map[history.Attempt]*watchedHold // whose first release is on its way
	further map[history.Attempt][]uint32     // the further keys of batches
	fresh   []*watchedHold                   // granted since the last Settle
	waiting []*watchedHold                   // granted before it
	newest  int64                            // stamp
	found   []Witness
}

// watchMemory is for how long a hold that ended is remembered.
const watchMemory = int64(10 * time.Second)

type watchedKey struct {
	holds []*watchedHold
	top   history.Call // the grant with the highest token
}

type watchedHold struct {
	grant   history.Call
	key     uint32
	end     int64          // forever: not known yet
	sure    int64          // until then its lease certainly runs; forever: it has none
	settled bool           // compared with those that were settled before
	others  []*watchedHold // of the further keys of its batch
}

// NewWatch judges a lock by what the options say of its promise; what they say
// of a run, it does not ask.
func NewWatch(o Options) *Watch {
	return &Watch{opt: o, keys: map[uint32]*watchedKey{}, at: map[history.Attempt]*watchedHold{}, leaving: map[history.Attempt]*watchedHold{}, further: map[history.Attempt][]uint32{}}
}

// Add takes note of a call that has begun, or has returned.
func (w *Watch) Add(c *history.Call, returned bool) {
	w.newest = max(w.newest, c.Invoke, c.Return)
	switch c.Kind {
	case history.KindAlso:
		w.further[c.Attempt] = append(w.further[c.Attempt], c.Key)
	case history.KindAcquire, history.KindTry:
		if returned && c.Outcome == history.Held {
			w.granted(c, c.Key)
			for _, key := range w.further[c.Attempt] {
				w.granted(c, key)
			}
		}
		if returned && c.Outcome != history.Held {
			delete(w.further, c.Attempt)
		}
	case history.KindRelease, history.KindCleanup, history.KindLost:
		// A hold ends when its release is sent; one that was certainly not sent
		// ends nothing, but that is known only later: Check will tell.
		if h := w.at[c.Attempt]; h != nil {
			h.end = min(h.end, c.Invoke)
			for _, o := range h.others {
				o.end = min(o.end, c.Invoke)
			}
			delete(w.at, c.Attempt)
			delete(w.further, c.Attempt)
			if c.Kind == history.KindRelease {
				w.leaving[c.Attempt] = h
			}
		}
		if returned {
			w.left(c)
		}
	case history.KindExtend:
		if h := w.at[c.Attempt]; h != nil && returned {
			w.extended(h, c)
		}
	case history.KindWrite:
		if returned && c.Outcome == history.Accepted && c.Flags&history.FlagStale != 0 {
			w.found = append(w.found, Witness{Class: StaleWrite, Key: c.Key, Calls: []history.Call{*c}, From: c.Invoke, To: c.Return})
		}
	}
}

// left takes note of the answer to a release: that the lock was gone is a breach
// if it was still certainly the holder's.
func (w *Watch) left(c *history.Call) {
	h := w.leaving[c.Attempt]
	delete(w.leaving, c.Attempt)
	if h != nil && c.Kind == history.KindRelease && c.Outcome == history.Lost {
		w.gone(h, c)
	}
}

// extended takes note of the answer to a renewal.
func (w *Watch) extended(h *watchedHold, c *history.Call) {
	switch c.Outcome {
	case history.Extended:
		h.sure = max(h.sure, w.lease(c.Invoke))
	case history.Lost:
		w.gone(h, c)
		h.end = min(h.end, c.Return) // the client knows it now
		delete(w.at, c.Attempt)
	}
}

func (w *Watch) gone(h *watchedHold, c *history.Call) {
	// Of a re-entrant lock's holds it is not plain which one was released.
	if c.Return < h.sure && !w.opt.Reentrant {
		w.found = append(w.found, Witness{Class: LostLock, Key: h.key, Calls: []history.Call{h.grant, *c}, From: h.grant.Return, To: c.Return})
	}
}

// lease is until when a lease certainly runs that was asked for at a moment; a
// lock without one is its holder's until the lock itself tells otherwise.
func (w *Watch) lease(asked int64) int64 {
	switch {
	case !w.opt.Leased:
		return forever
	case w.opt.TTL <= 0:
		return 0
	}
	return asked + int64(w.opt.TTL-w.opt.TTL/1000-w.opt.Slack)
}

func (w *Watch) granted(c *history.Call, key uint32) {
	k := w.keys[key]
	if k == nil {
		k = &watchedKey{}
		w.keys[key] = k
	}
	h := &watchedHold{grant: *c, key: key, end: forever, sure: w.lease(c.Invoke)}
	if first := w.at[c.Attempt]; first != nil {
		first.others = append(first.others, h)
	} else {
		w.at[c.Attempt] = h
	}
	k.holds = append(k.holds, h)
	w.fresh = append(w.fresh, h)
	if c.Flags&history.FlagShared != 0 {
		return
	}
	if c.Fence == 0 {
		if w.opt.Fencing {
			w.found = append(w.found, Witness{Class: MissingToken, Key: key, Calls: []history.Call{*c}, From: c.Invoke, To: c.Return})
		}
		return
	}
	if top := &k.top; top.Fence >= c.Fence && top.Return < c.Invoke {
		w.found = append(w.found, Witness{Class: TokenRegression, Key: key, Calls: []history.Call{*top, *c}, From: top.Return, To: c.Return})
	}
	if c.Fence > k.top.Fence {
		k.top = *c
	}
}

// Settle returns what was found since it was last called. Whoever feeds a Watch
// reads one client after the other, and so may meet a grant before the release
// that made way for it; a pair of holds therefore counts only when everything
// was read once more.
func (w *Watch) Settle() []Witness {
	for _, h := range w.waiting {
		k := w.keys[h.key]
		for _, o := range k.holds {
			if !o.settled || !w.clash(o, h) {
				continue
			}
			pair := []history.Call{o.grant, h.grant}
			if inTime(&h.grant, &o.grant) < 0 {
				slices.Reverse(pair)
			}
			from := max(o.grant.Return, h.grant.Return)
			w.found = append(w.found, Witness{Class: Overlap, Key: h.key, Calls: pair, From: from, To: max(from, min(o.end, h.end, w.newest))})
		}
		h.settled = true
	}
	w.waiting = append(w.waiting[:0], w.fresh...)
	w.fresh = w.fresh[:0]
	for _, k := range w.keys {
		k.holds = slices.DeleteFunc(k.holds, func(h *watchedHold) bool { return h.end < w.newest-watchMemory })
	}
	found := w.found
	w.found = nil
	return found
}

// Died makes what a client held count no more: its process is gone, and when
// exactly it went is not known here.
func (w *Watch) Died(client uint32) {
	for _, k := range w.keys {
		k.holds = slices.DeleteFunc(k.holds, func(h *watchedHold) bool { return h.grant.Client == client })
	}
}

// clash reports whether two clients that must not held at once.
func (w *Watch) clash(x, y *watchedHold) bool {
	a, b := &x.grant, &y.grant
	switch {
	case a.Attempt == b.Attempt, w.opt.Reentrant && a.Client == b.Client:
		return false
	case a.Flags&b.Flags&history.FlagShared != 0:
		return false
	}
	return a.Return < y.end && b.Return < x.end
}
