package checker

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// call is what the rules need of a call about a lock: less than half of it,
// since all calls of one key are in memory at once.
type call struct {
	Invoke, Return int64
	Fence          uint64
	Client, Seq    uint32
	attempt        int32 // its number
	Kind           history.Kind
	Outcome        history.Outcome
	Flags          history.Flags
}

// compareCalls orders calls of one attempt by their invoke. Only those that are
// alike are equal, so that even of a record that cannot be the same is said in
// whatever order it comes.
func compareCalls(a, b *call) int {
	if a.Invoke != b.Invoke {
		return cmp.Compare(a.Invoke, b.Invoke)
	}
	if a.Client != b.Client || a.Seq != b.Seq {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Seq, b.Seq))
	}
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Return, b.Return), cmp.Compare(a.Outcome, b.Outcome),
		cmp.Compare(a.Flags, b.Flags), cmp.Compare(a.Fence, b.Fence))
}

// inTime orders calls of all attempts by their invoke.
func (p *part) inTime(i, j int32) int {
	a, b := &p.calls[i], &p.calls[j]
	if a.Invoke != b.Invoke {
		return cmp.Compare(a.Invoke, b.Invoke)
	}
	if a.Client != b.Client || a.Seq != b.Seq {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Seq, b.Seq))
	}
	return cmp.Or(compareIDs(p.ids[a.attempt], p.ids[b.attempt]), compareCalls(a, b))
}

// inTime orders whole calls in the same way.
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

func compareIDs(a, b history.Attempt) int { return slices.Compare(a[:], b[:]) }

// numbers gives attempts numbers from 0, in the order in which they are met. It
// takes half of the memory and time of a map, and nearly all calls on a hot key
// are attempts of their own.
type numbers struct {
	ids  []history.Attempt // by number
	seed maphash.Seed
	// table has, at the first free place from an id's hash on, the hash and the
	// number + 1. Its size is a power of two.
	table []place
}

// place is one of the table; its number is 0 if it is free.
type place struct{ hash, number uint32 }

// of returns id's number, and whether it is a new one.
func (n *numbers) of(id history.Attempt) (number int32, fresh bool) {
	if 3*(len(n.ids)+1) > 2*len(n.table) {
		n.grow()
	}
	hash := uint32(maphash.Bytes(n.seed, id[:]))
	mask := uint32(len(n.table) - 1)
	at := hash & mask
	for ; n.table[at].number != 0; at = (at + 1) & mask {
		if x := n.table[at]; x.hash == hash && n.ids[x.number-1] == id {
			return int32(x.number) - 1, false
		}
	}
	n.ids = append(n.ids, id)
	n.table[at] = place{hash, uint32(len(n.ids))}
	return int32(len(n.ids)) - 1, true
}

func (n *numbers) grow() {
	old := n.table
	if old == nil {
		n.seed = maphash.MakeSeed()
	}
	n.table = make([]place, max(64, 2*len(old)))
	mask := uint32(len(n.table) - 1)
	for _, x := range old {
		if x.number == 0 {
			continue
		}
		at := x.hash & mask
		for n.table[at].number != 0 {
			at = (at + 1) & mask
		}
		n.table[at] = x
	}
}
