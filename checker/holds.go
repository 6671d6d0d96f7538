package checker

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// Hold is one acquisition as its client saw it.
type Hold struct {
	Key     uint32
	Client  uint32
	Attempt history.Attempt
	// Start is when the acquire returned; End is when the client sent its release
	// or observed its loss, or the last stamp known of it.
	Start, End int64
	Ended      Ending
	Asked      int64         // when the acquire was sent
	Flags      history.Flags // of the grant
	Grant      int           // index of the grant in the history's calls
	EndedBy    int           // index of the call that ended it, -1 if Ended is StreamEnd
}

// Ending is how a hold ended.
type Ending uint8

// The endings.
const (
	ReleaseSent  Ending = iota // a release or clean-up was sent
	LossObserved               // the client observed that it had lost the lock
	StreamEnd                  // the client's record ends or is broken during the hold, or the client was killed
)

// HoldList has the holds of one key, by (start, client).
type HoldList struct {
	part  *part
	order []int32 // numbers of the attempts that were granted the key
}

// Len is the number of holds.
func (l HoldList) Len() int { return len(l.order) }

// At is hold i. Its Grant and EndedBy number the calls about the key.
func (l HoldList) At(i int) Hold { return l.part.hold(&l.part.attempts[l.order[i]]) }

// Holds returns the visitors of keys, which are shown every call about a key once
// and pass on its holds. visit may be called by several goroutines at once; the
// list is its own until it returns.
func (j *Judge) Holds(visit func(key uint32, holds HoldList)) func(key uint32, calls int) history.KeyVisitor {
	return func(key uint32, calls int) history.KeyVisitor { return &holdVisitor{j.gather(key, calls), visit} }
}

// holdVisitor gathers the holds of one key.
type holdVisitor struct {
	*keyVisitor
	visit func(key uint32, holds HoldList)
}

// Done passes the holds on.
func (v *holdVisitor) Done() history.KeyVisitor {
	p := v.fold()
	*v.keyVisitor = keyVisitor{} // it may be large, and is needed no more
	l := HoldList{part: p}
	for i := range p.attempts {
		if p.attempts[i].held(p.calls) {
			l.order = append(l.order, int32(i))
		}
	}
	start := func(i int32) int64 { return p.calls[p.attempts[i].acquire].Return }
	slices.SortFunc(l.order, func(i, j int32) int {
		a, b := &p.attempts[i], &p.attempts[j]
		return cmp.Or(cmp.Compare(start(i), start(j)), cmp.Compare(p.client(a), p.client(b)), compareIDs(p.id(a), p.id(b)))
	})
	v.visit(p.key, l)
	return nil
}

// hold is the hold of a in the client's view; its calls are the part's call
// numbers. The attempt a must be holding.
func (p *part) hold(a *attempt) Hold {
	grant := &p.calls[a.acquire]
	if !a.granted(p.calls) {
		grant = &p.calls[a.confirmed]
	}
	h := Hold{Key: p.key, Client: p.client(a), Attempt: p.id(a), Start: grant.Return, Asked: grant.Invoke, Flags: grant.Flags, Grant: int(a.acquire), EndedBy: -1, Ended: StreamEnd}
	// The client's process may have died: it held until its last record, or until
	// it was killed. Nothing is known of the time after.
	h.End = max(grant.Return, p.clients.of(p.client(a)).last)
	if p.damage > 0 {
		// A release may be among the unreadable records.
		h.End = max(grant.Return, p.runOf(a).end)
	}
	if p.clients.of(h.Client).stream.Unnumbered {
		// A release may be missing unnoticed.
		h.End = grant.Return
		if i := a.lastExtend; i != none && p.unbroken(a, i) {
			h.End = p.calls[i].Return
		}
	}
	if i := a.firstRelease; i != none && p.unbroken(a, i) {
		h.End, h.Ended, h.EndedBy = p.calls[i].Invoke, ReleaseSent, int(i)
	}
	if i := a.lost; i != none && p.unbroken(a, i) {
		if at := lossSeen(&p.calls[i]); h.Ended == StreamEnd || at < h.End {
			h.End, h.Ended, h.EndedBy = at, LossObserved, int(i)
		}
	}
	if until, ok := p.trusted(a); ok && (until < h.End || h.Ended == StreamEnd) {
		h.End, h.Ended, h.EndedBy = until, LossObserved, -1
	}
	h.End = max(h.End, h.Start)
	return h
}

// trusted is until when a's client trusted its lease, by its own records: a renewal
// that was answered later is that of a hold which was over for it.
func (p *part) trusted(a *attempt) (until int64, ok bool) {
	leases := p.leases[p.calls[a.any].attempt]
	slices.SortFunc(leases, func(x, y stretch) int { return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(x.to, y.to)) })
	for i, x := range leases {
		if i > 0 && x.from > until {
			break
		}
		until = max(until, x.to)
	}
	return until, len(leases) > 0
}

// endMissing reports whether nothing shows how the hold h ended: its client neither
// closed its record nor is known to have been killed.
func (p *part) endMissing(h *Hold) bool {
	cl := p.clients.of(h.Client)
	return h.Ended == StreamEnd && !cl.sealed && !cl.died
}

// lapsed reports whether a's lease was over at that time, however the server counted.
func (p *part) lapsed(a *attempt, at int64) bool {
	if !p.opt.Leased || p.opt.TTL <= 0 {
		return false
	}
	from := p.stamp(a.acquire)
	if a.lastExtend != none {
		from = max(from, p.stamp(a.lastExtend))
	}
	return from+int64(p.opt.TTL) <= at
}
