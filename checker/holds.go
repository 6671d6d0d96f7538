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
// numbers. The attempt a must be held.
func (p *part) hold(a *attempt) Hold {
	grant := &p.calls[a.acquire]
	h := Hold{Key: p.key, Client: p.client(a), Attempt: p.id(a), Start: grant.Return, Asked: grant.Invoke, Flags: grant.Flags, Grant: int(a.acquire), EndedBy: -1, Ended: StreamEnd}
	// The client's process may have died: it held until its last record, or until
	// it was killed. Nothing is known of the time after.
	h.End = max(grant.Return, p.clients.of(p.client(a)).last)
	if p.damage > 0 {
		// A release may be among the unreadable records.
		h.End = max(grant.Return, p.runOf(a).end)
	}
	if i := a.firstRelease; i != none && p.unbroken(a, i) {
		h.End, h.Ended, h.EndedBy = p.calls[i].Invoke, ReleaseSent, int(i)
	}
	if i := a.lost; i != none && p.unbroken(a, i) {
		if at := lossSeen(&p.calls[i]); h.Ended == StreamEnd || at < h.End {
			h.End, h.Ended, h.EndedBy = at, LossObserved, int(i)
		}
	}
	h.End = max(h.End, h.Start)
	return h
}
