package checker

import (
	"slices"
	"time"

	"github.com/lockbench/lockbench/history"
)

// Watch looks at a history while it is written, so that a violation shows within
// a second and not at the end of a long run. It knows two rules, those that
// matter at once: two clients hold a key, and a token does not grow. It forgets
// holds that ended a while ago, so a record that comes very late may escape it:
// what counts is what Check says of the whole.
//
// It is fed calls as they begin and as they return, in any order, and settles
// from time to time. It is for one goroutine.
type Watch struct {
	reentrant bool
	keys      map[uint32]*watchedKey
	at        map[history.Attempt]*watchedHold
	further   map[history.Attempt][]uint32 // the further keys of batches
	fresh     []*watchedHold               // granted since the last Settle
	waiting   []*watchedHold               // granted before it
	newest    int64                        // stamp
	found     []Witness
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
	settled bool           // compared with those that were settled before
	others  []*watchedHold // of the further keys of its batch
}

// NewWatch judges a lock; reentrant: its holder may take it again.
func NewWatch(reentrant bool) *Watch {
	return &Watch{reentrant: reentrant, keys: map[uint32]*watchedKey{}, at: map[history.Attempt]*watchedHold{}, further: map[history.Attempt][]uint32{}}
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
		}
	}
}

func (w *Watch) granted(c *history.Call, key uint32) {
	k := w.keys[key]
	if k == nil {
		k = &watchedKey{}
		w.keys[key] = k
	}
	h := &watchedHold{grant: *c, key: key, end: forever}
	if first := w.at[c.Attempt]; first != nil {
		first.others = append(first.others, h)
	} else {
		w.at[c.Attempt] = h
	}
	k.holds = append(k.holds, h)
	w.fresh = append(w.fresh, h)
	if c.Fence == 0 || c.Flags&history.FlagShared != 0 {
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
	case a.Attempt == b.Attempt, w.reentrant && a.Client == b.Client:
		return false
	case a.Flags&b.Flags&history.FlagShared != 0:
		return false
	}
	return a.Return < y.end && b.Return < x.end
}
