package checker

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/bits"
	"slices"
)

// The search walks through the bounds of all items and tries in time, and keeps
// every way in which the lock may have passed from one item to the next so far.
// Every decision is deferred: an item takes the lock at its ar, or when it must
// explain a busy try; it releases when the next item takes it. So a few facts
// describe a way: which items had their turn, since when the last of them may
// have released, and until when it may have held.
//
// Ways branch only at a choice: which item explains a try that the last holder
// cannot; and which of the items that may come before or after another (those
// whose rc is not after their ar) come first. One comes first if it cannot come
// after (its ar is before the other's rc); else only an item that must release
// earlier than the other needs to, since any other can follow at the same moment
// and hold as long.
//
// An item may explain a try only if it can release before the earliest ar of the
// remaining items: then these can all have their turns, since no two grants
// contradict one another. So a way ends only at a try; and if no way explains a
// try, no order does.
//
// Acquires that may have happened at any time, or never, are alike once their rc
// has passed, and are only counted; of those whose rc is in the future the
// earliest serves best.

// maxWays bounds the ways that are followed at once, maxLoose the items whose
// order can be chosen, and maxEffort the comparisons of two ways in total. Beyond
// them nothing is decided.
const (
	maxWays   = 1024
	maxLoose  = 256
	maxEffort = 200_000_000
)

// set is a set of slots.
type set [maxLoose / 64]uint64

func (s *set) has(slot int) bool { return s[slot/64]&(1<<(slot%64)) != 0 }
func (s *set) add(slot int)      { s[slot/64] |= 1 << (slot % 64) }
func (s *set) remove(slot int)   { s[slot/64] &^= 1 << (slot % 64) }

// way is one way in which the lock may have passed from item to item so far.
type way struct {
	done  set   // loose items that had their turn
	next  int   // number of firm items that had
	used  int   // number of free items that had
	until int64 // the last holder's rc: no other item before
	reach int64 // its rr: it may have held until then
}

// frontier is the search on one key.
type frontier struct {
	firm  []item // certain, ar before rc, in their only order
	loose []item // the other certain items, and optional items that end; by ac
	free  []item // optional items that may last forever, by ac
	due   []turn // the certain ones, by ar

	oldest  int64    // no remaining busy try was sent before
	opened  int      // loose items opened so far
	slots   set      // in use
	open    []opened // loose items that may still have their turn
	passed  int      // due turns that are over
	started int      // free items whose acquire was sent
	ready   int      // of those, the items whose rc has passed
	later   moments  // the rc of the others

	ways   []way
	next   []way
	effort int
}

// turn points to a certain item.
type turn struct {
	firm bool
	i    int
}

type opened struct{ i, slot int }

func newFrontier(items []item) *frontier {
	f := &frontier{ways: []way{{until: -forever, reach: -forever}}}
	for _, x := range items {
		switch {
		case !x.optional && x.ar < x.rc:
			f.firm = append(f.firm, x)
		case !x.optional || x.rr < forever:
			f.loose = append(f.loose, x)
		default:
			f.free = append(f.free, x)
		}
	}
	slices.SortFunc(f.firm, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.ar, b.ar), cmp.Compare(a.rc, b.rc), cmp.Compare(a.at, b.at))
	})
	byCall := func(a, b item) int { return cmp.Or(cmp.Compare(a.ac, b.ac), cmp.Compare(a.at, b.at)) }
	slices.SortFunc(f.loose, byCall)
	slices.SortFunc(f.free, byCall)
	for i := range f.firm {
		f.due = append(f.due, turn{true, i})
	}
	for i, x := range f.loose {
		if !x.optional {
			f.due = append(f.due, turn{false, i})
		}
	}
	slices.SortStableFunc(f.due, func(a, b turn) int {
		x, y := f.item(a), f.item(b)
		return cmp.Or(cmp.Compare(x.ar, y.ar), cmp.Compare(x.rc, y.rc))
	})
	return f
}

func (f *frontier) item(t turn) *item {
	if t.firm {
		return &f.firm[t.i]
	}
	return &f.loose[t.i]
}

// search decides the busy tries, which are in order of their return.
func (p *part) search(refused []timed, items []item) {
	f := newFrontier(items)
	oldest := make([]int64, len(refused)) // call of those still to come
	for k, since := len(refused)-1, int64(forever); k >= 0; k-- {
		since = min(since, p.refusal(refused[k].number).from)
		oldest[k] = since
	}
	for k, x := range refused {
		r := p.refusal(x.number)
		f.oldest = oldest[k]
		ok := true
		for ok && f.passed < len(f.due) && f.item(f.due[f.passed]).ar <= r.to {
			ok = f.take(f.due[f.passed])
		}
		explained := false
		if ok {
			explained, ok = f.explain(r)
		}
		if !ok {
			p.rep.Undecided += int64(len(refused) - k)
			p.rep.UndecidedWhy = fmt.Sprintf("too many outcomes on key %d are unknown at once to try all their orders", p.key)
			return
		}
		if !explained {
			p.reportUnexplained(r, items)
		}
	}
}

// advance opens the items whose acquires were sent by now.
func (f *frontier) advance(now int64) bool {
	if len(f.open) > 0 {
		f.close(func(x item) bool { return x.optional && x.rr < f.oldest })
	}
	for ; f.opened < len(f.loose) && f.loose[f.opened].ac <= now; f.opened++ {
		slot := f.slot()
		if slot < 0 {
			return false
		}
		f.slots.add(slot)
		f.open = append(f.open, opened{f.opened, slot})
	}
	for ; f.started < len(f.free) && f.free[f.started].ac <= now; f.started++ {
		heap.Push(&f.later, f.free[f.started].rc)
	}
	for len(f.later) > 0 && f.later[0] <= now {
		heap.Pop(&f.later)
		f.ready++
	}
	return true
}

// moments is a heap of times for container/heap.
type moments []int64

func (m moments) Len() int           { return len(m) }
func (m moments) Less(i, j int) bool { return m[i] < m[j] }
func (m moments) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *moments) Push(t any)        { *m = append(*m, t.(int64)) }

func (m *moments) Pop() any {
	n := len(*m) - 1
	last := (*m)[n]
	*m = (*m)[:n]
	return last
}

// slot finds a free slot, -1 if there is none.
func (f *frontier) slot() int {
	for i, word := range f.slots {
		if word != ^uint64(0) {
			return 64*i + bits.TrailingZeros64(^word)
		}
	}
	return -1
}

// close removes the items that are over.
func (f *frontier) close(over func(item) bool) {
	kept := f.open[:0]
	for _, o := range f.open {
		if !over(f.loose[o.i]) {
			kept = append(kept, o)
			continue
		}
		f.slots.remove(o.slot)
		for i := range f.ways {
			f.ways[i].done.remove(o.slot)
		}
	}
	f.open = kept
}

// take gives the due item its turn on the ways on which it had none yet. It
// returns false if there are too many ways.
func (f *frontier) take(t turn) bool {
	x := f.item(t)
	if !f.advance(x.ar) {
		return false
	}
	f.next = f.next[:0]
	for _, w := range f.ways {
		if f.had(&w, t) {
			f.keep(w)
			continue
		}
		if !f.pass(w, x, t, x.ar) {
			return false
		}
	}
	f.ways, f.next = f.next, f.ways
	f.passed++
	if !t.firm {
		f.close(func(y item) bool { return y.at == x.at })
	}
	return len(f.ways) > 0
}

// had reports whether t had its turn on w.
func (f *frontier) had(w *way, t turn) bool {
	if t.firm {
		return t.i < w.next
	}
	for _, o := range f.open {
		if o.i == t.i {
			return w.done.has(o.slot)
		}
	}
	return false // its acquire is not sent yet
}
