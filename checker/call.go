package checker

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// call is the part of a lock call that the rules need: less than half of it,
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

// compareCalls orders the calls of one attempt by their invoke. Only identical
// calls are equal, so that the result does not depend on the order of reading,
// even for contradicting records.
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

// inTime orders complete calls in the same way.
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

// numbers numbers attempts from 0 in order of arrival. It takes half the memory
// and time of a map, and nearly all calls on a hot key are attempts of their own.
type numbers struct {
	ids  chunkedList[history.Attempt] // by number
	seed maphash.Seed
	// table stores the hash and the number + 1, at the first free place from the
	// id's hash on. Its size is a power of two.
	table []place
	used  uint32 // keeps the compiler from removing fetch
}

// newNumbers makes room for about this many attempts.
func newNumbers(attempts int) numbers {
	n := numbers{seed: maphash.MakeSeed()}
	n.grow(attempts)
	return n
}

// place is an entry of the table; number 0 means free.
type place struct{ hash, number uint32 }

func (n *numbers) hash(id history.Attempt) uint32 { return uint32(maphash.Bytes(n.seed, id[:])) }

// fetch loads the table entries of several ids into the CPU cache. The table is
// far larger than the cache: the loads run in parallel here, and one after the
// other in of.
func (n *numbers) fetch(ids []waiting) {
	mask := uint32(len(n.table) - 1)
	for i := range ids {
		n.used |= n.table[ids[i].hash&mask].number
	}
}

// of returns the number of the id with that hash, and whether it is new.
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

// room reports whether the table has room for this many attempts.
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
