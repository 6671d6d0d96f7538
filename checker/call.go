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
	return cmp.Or(compareIDs(*p.ids.at(a.attempt), *p.ids.at(b.attempt)), compareCalls(a, b))
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
	ids  chunkedList[history.Attempt] // by number
	seed maphash.Seed
	// table has, at the first free place from an id's hash on, the hash and the
	// number + 1. Its size is a power of two.
	table []place
	used  uint32 // see fetch
}

// newNumbers makes room for about that many attempts.
func newNumbers(attempts int) numbers {
	n := numbers{seed: maphash.MakeSeed()}
	n.grow(attempts)
	return n
}

// place is one of the table; its number is 0 if it is free.
type place struct{ hash, number uint32 }

func (n *numbers) hash(id history.Attempt) uint32 { return uint32(maphash.Bytes(n.seed, id[:])) }

// fetch looks at the places of some ids, so that they are at hand when they are
// asked for. The table is far larger than any cache: in turn, each would be
// waited for; like this they come side by side.
func (n *numbers) fetch(ids []waiting) {
	mask := uint32(len(n.table) - 1)
	for i := range ids {
		n.used |= n.table[ids[i].hash&mask].number // or nobody would look
	}
}

// of returns the number of the id with that hash, and whether it is a new one.
func (n *numbers) of(id history.Attempt, hash uint32) (number int32, fresh bool) {
	count := n.ids.len()
	if !n.room(int(count) + 1) {
		n.grow(2 * int(count))
	}
	mask := uint32(len(n.table) - 1)
	at := hash & mask
	for ; n.table[at].number != 0; at = (at + 1) & mask {
		if x := n.table[at]; x.hash == hash && *n.ids.at(int32(x.number) - 1) == id {
			return int32(x.number) - 1, false
		}
	}
	n.ids.add(id)
	n.table[at] = place{hash, uint32(count) + 1}
	return count, true
}

// room: the table has room for that many attempts.
func (n *numbers) room(attempts int) bool { return 3*attempts <= 2*len(n.table) }

func (n *numbers) grow(attempts int) {
	old, size := n.table, 64
	for 3*attempts > 2*size {
		size *= 2
	}
	n.table = make([]place, size)
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
