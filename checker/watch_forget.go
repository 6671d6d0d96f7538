package checker

import (
	"time"

	"github.com/lockbench/lockbench/history"
)

// A Watch may drop an attempt of a key that can neither be accused, nor prove
// or explain anything any more. Dropping more would only make it miss
// violations, except for attempts that may explain why a try returned busy.

// maxMaybeHeld bounds the attempts of a key that have ended for their clients
// but may still have the lock. maxPast bounds the attempts whose hold has
// ended, and which are kept to prove a late success.
const (
	maxMaybeHeld = 64
	maxPast      = 16
)

// disposition is the further use of an attempt, the most important first.
type disposition uint8

const (
	stays     disposition = iota
	maybeHeld             // ended for its client, but may have the lock
	past                  // its hold has ended
	dropped
)

// forget drops the attempts that do not matter any more.
func (w *Watch) forget(k *watchedKey, p *part) {
	for _, a := range k.attempts {
		a.folded = nil
	}
	for i := range p.attempts {
		if a := w.attempts[p.id(&p.attempts[i])]; a != nil {
			a.folded, a.place = &p.attempts[i], int32(i)
		}
	}
	k.raiseTop(p)
	k.judged = max(k.judged, w.decided(k, p))
	var (
		dispositions = make([]disposition, len(k.attempts))
		low          = w.oldestTry(k)
		superseded   = k.passedOn(p, low)
		since        = int64(forever) // since then a client has held that may still be confirmed
		idle         = true
	)
	for i, a := range k.attempts {
		switch {
		case w.underway(k, a, p):
			idle = false
			if a.folded != nil && a.folded.granted(p.calls) {
				since = min(since, p.calls[a.folded.acquire].Return)
			}
		default:
			dispositions[i] = w.disposition(k, a, p, low, superseded)
		}
	}
	if p.opt.Reentrant {
		w.share(k, p, dispositions)
	}
	w.drop(k, p, dispositions, since)
	if idle {
		delete(w.pending, k.number)
	}
}

// underway reports whether more calls of a may follow.
func (w *Watch) underway(k *watchedKey, a *watchedAttempt, p *part) bool {
	cl := w.clients[a.client]
	for _, c := range a.calls {
		if max(c.Invoke, c.Return) > min(w.now.tries, k.judged) || c.Outcome == history.Open && !cl.dead {
			return true
		}
	}
	switch {
	case cl.dead:
		return false
	case cl.latest == a.id:
		return true
	}
	return a.folded != nil && a.folded.held(p.calls) && p.hold(a.folded).Ended == StreamEnd
}

// patience bounds how long a busy try waits for the answers to other calls,
// which may show the holder.
const patience = int64(time.Second)

// maxTries bounds the busy tries that wait.
const maxTries = 4096

// decided is a time up to which no answer is missing that would change the
// judgement of a busy try.
func (w *Watch) decided(k *watchedKey, p *part) int64 {
	at, waiting := w.now.tries, 0
	for _, a := range k.attempts {
		if a.refused(w.now.tries) {
			waiting++
			continue
		}
		if w.clients[a.client].dead {
			continue
		}
		granted := a.folded != nil && a.folded.granted(p.calls)
		for _, c := range a.calls {
			acquire := c.Kind == history.KindAcquire || c.Kind == history.KindTry
			open := c.Outcome == history.Open || max(c.Invoke, c.Return) > w.now.tries
			if acquire && c.Outcome == history.Unknown {
				open = w.clients[a.client].latest == a.id && (a.folded == nil || a.folded.cleaned == none && a.folded.absent == none)
			}
			if open && (acquire || granted) {
				at = min(at, c.Invoke-1)
			}
		}
	}
	if waiting > maxTries {
		return w.now.tries
	}
	return max(at, w.now.tries-patience)
}

// oldestTry is a time before which no unjudged try was sent.
func (w *Watch) oldestTry(k *watchedKey) int64 {
	low := w.now.tries
	for _, a := range k.attempts {
		for _, c := range a.calls {
			open := c.Outcome == history.Open && !w.clients[c.Client].dead
			if c.Kind == history.KindTry && (open || c.Return > k.judged) {
				low = min(low, c.Invoke)
			}
		}
	}
	return low - w.now.doubt
}

// passedOn is a time such that a certain holder granted before it must have
// released before any unjudged try: another acquire was sent then, and granted
// before those tries. It is known only if the order of the grants is.
func (k *watchedKey) passedOn(p *part, low int64) int64 {
	passed := -int64(forever)
	if k.unfit || p.sharing || p.opt.TriesYield || p.opt.Leased && p.opt.Reentrant {
		return passed
	}
	for i := range p.attempts {
		if x, ok := p.item(int32(i)); ok && !x.optional && x.ar < low {
			passed = max(passed, x.ac)
		}
	}
	return passed
}

// disposition decides the further use of an attempt that is not under way.
func (w *Watch) disposition(k *watchedKey, a *watchedAttempt, p *part, low, superseded int64) disposition {
	if a == k.top {
		return stays
	}
	var (
		x  item
		ok bool
	)
	if a.folded != nil {
		x, ok = p.item(a.place)
	}
	blind := k.blind || k.unfit
	switch {
	case !ok:
		// It got nothing; but a lock whose tries yield may have been busy
		// because of it.
		for _, c := range a.calls {
			if max(c.Invoke, c.Return)+w.now.doubt >= low {
				return stays
			}
		}
		return dropped
	case x.rr >= forever-w.now.doubt && (blind || !x.optional && x.ar < superseded):
		return dropped
	case x.rr >= forever-w.now.doubt:
		return maybeHeld
	case x.rr >= low:
		return stays
	}
	return past
}

// share gives a hold of a re-entrant lock and its inner attempts the same
// disposition, since a part of them proves too little.
func (w *Watch) share(k *watchedKey, p *part, dispositions []disposition) {
	least := map[*attempt]disposition{} // of the outer ones
	outer := map[uint32]*attempt{}      // of each client the last
	of := make([]*attempt, len(dispositions))
	for i, a := range k.attempts {
		if a.folded == nil {
			continue
		}
		// Once a client's hold count is uncertain, it stays so.
		if dispositions[i] != stays && p.unsure(a.folded) {
			k.blind, k.countUncertain = true, true
		}
		if !a.folded.inner || outer[a.client] == nil {
			outer[a.client] = a.folded
			least[a.folded] = dispositions[i]
		}
		of[i] = outer[a.client]
		least[of[i]] = min(least[of[i]], dispositions[i])
	}
	for i, x := range of {
		if x != nil {
			dispositions[i], k.attempts[i].folded = least[x], x
		}
	}
}

// drop removes the dropped attempts, and those beyond the limits.
func (w *Watch) drop(k *watchedKey, p *part, dispositions []disposition, since int64) {
	maybeHolders, before := 0, map[*attempt]bool{}
	for i := len(dispositions) - 1; i >= 0; i-- {
		switch dispositions[i] {
		case maybeHeld:
			if maybeHolders++; maybeHolders > maxMaybeHeld {
				k.blind = true
				dispositions[i] = dropped
			}
		case past:
			// A client that has held since before its end may still get a
			// confirmation, which then came too late.
			a := k.attempts[i].folded
			useful := a != nil && a.granted(p.calls) && p.hold(a).End > since
			if useful && len(before) < maxPast {
				before[a] = true
			}
			if !useful || !before[a] {
				dispositions[i] = dropped
			}
		}
	}
	kept := k.attempts[:0]
	for i, a := range k.attempts {
		if dispositions[i] != dropped {
			kept = append(kept, a)
			continue
		}
		if a.folded != nil && a.folded.held(p.calls) {
			h := p.hold(a.folded)
			if cl := w.clients[a.client]; cl.dead && h.Ended == StreamEnd {
				h.End = cl.died
			}
			k.free = max(k.free, h.End)
		}
		if a.kept--; a.kept == 0 {
			delete(w.attempts, a.id)
			delete(w.judge.batches, a.id)
		}
	}
	clear(k.attempts[len(kept):])
	k.attempts = kept
	for _, a := range kept {
		a.thin(w.now.tries)
	}
}

// raiseTop keeps the grant with the highest token, which later grants must exceed.
func (k *watchedKey) raiseTop(p *part) {
	if !p.opt.Fencing {
		return
	}
	for _, a := range k.attempts {
		if x := a.folded; x != nil && x.held(p.calls) && !x.shared && (k.top == nil || p.calls[x.acquire].Fence > k.top.token()) {
			k.top = a
		}
	}
}

// token is the token of a's grant.
func (a *watchedAttempt) token() uint64 {
	for _, c := range a.calls {
		if c.Outcome == history.Held {
			return c.Fence
		}
	}
	return 0
}

// manyCalls is the number of calls after which an attempt's renewals are
// thinned out.
const manyCalls = 16

// thin drops judged renewals that no rule needs: of the confirmed ones the
// first and the last suffice.
func (a *watchedAttempt) thin(judged int64) {
	if len(a.calls) < manyCalls {
		return
	}
	first, last := -1, -1
	for i, c := range a.calls {
		if c.Outcome != history.Extended || c.Return > judged {
			continue
		}
		if first < 0 || c.Return < a.calls[first].Return {
			first = i
		}
		if last < 0 || c.Invoke > a.calls[last].Invoke {
			last = i
		}
	}
	kept := a.calls[:0]
	for i, c := range a.calls {
		if c.Kind != history.KindExtend || i == first || i == last || c.Outcome == history.Open || c.Outcome == history.Lost || c.Return > judged {
			kept = append(kept, c)
		}
	}
	a.calls = kept
}
