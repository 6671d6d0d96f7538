package checker

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// In a lock with readers two items conflict unless both are readers.
//
// A try for writing is busy while any attempt has the lock, a try for reading
// while a writer has it. If all outcomes are known, an item x can have the lock
// anywhere within its envelope: from its ac, but not before the rc of earlier
// conflicting items, to its rr, but not after the ar of later conflicting items.
// A hand-over is possible at any moment between the one's rc and the other's ar,
// independently for each pair. So a busy try is explained if and only if it meets
// the envelope of a conflicting item.
//
// Items whose order is not certain, or which may have no length, keep their
// widest bounds and do not narrow other items: that is sound.

// envelopes decides the busy tries of a lock with readers.
func (p *part) envelopes(refused []timed, items []item) {
	var all, exclusive bounds
	for _, x := range items {
		if x.optional || x.rc < x.ar {
			continue
		}
		all.add(x)
		if !p.attempts[x.at].shared {
			exclusive.add(x)
		}
	}
	all.sort()
	exclusive.sort()
	var holders, writers []item
	for _, x := range items {
		shared := p.attempts[x.at].shared
		if !x.optional && x.ar <= x.rc {
			against := &all
			if shared {
				against = &exclusive
			}
			x.ac, x.rr = against.narrow(x)
		}
		holders = append(holders, x)
		if !shared {
			writers = append(writers, x)
		}
	}
	var forReading, forWriting []timed
	for _, x := range refused {
		if p.calls[p.acquire(x.number)].Flags&history.FlagShared != 0 {
			forReading = append(forReading, x)
		} else {
			forWriting = append(forWriting, x)
		}
	}
	p.reportWithoutHolder(forReading, writers)
	p.reportWithoutHolder(forWriting, holders)
}

// bounds are the sorted ends and starts of certain items.
type bounds struct{ ends, starts []edge }

type edge struct {
	t, other int64 // this bound, and the item's other one
	at       int32
}

func (b *bounds) add(x item) {
	b.ends = append(b.ends, edge{x.rc, x.ar, x.at})
	b.starts = append(b.starts, edge{x.ar, x.rc, x.at})
}

func (b *bounds) sort() {
	for _, list := range [][]edge{b.ends, b.starts} {
		slices.SortFunc(list, func(x, y edge) int { return cmp.Or(cmp.Compare(x.t, y.t), cmp.Compare(x.at, y.at)) })
	}
}

// narrow returns x's ac and rr between its neighbours. Two items without length
// at one moment may come in either order: neither narrows the other.
func (b *bounds) narrow(x item) (ac, rr int64) {
	ac, rr = x.ac, x.rr
	k, _ := slices.BinarySearchFunc(b.ends, x.ar, func(e edge, t int64) int {
		if e.t <= t {
			return -1
		}
		return 1
	})
	for k--; k >= 0; k-- {
		if e := b.ends[k]; e.at != x.at && e.other < x.rc {
			ac = max(ac, b.ends[k].t)
			break
		}
	}
	k, _ = slices.BinarySearchFunc(b.starts, x.rc, func(e edge, t int64) int { return cmp.Compare(e.t, t) })
	for ; k < len(b.starts); k++ {
		if e := b.starts[k]; e.at != x.at && e.other > x.ar {
			rr = min(rr, b.starts[k].t)
			break
		}
	}
	return ac, rr
}

// fitAmongReaders finds the writers to which readers leave no moment. A writer
// may be known only to have had the lock at some moment between its rc and its
// ar, and readers' holds may cover all of that together, though none does alone.
// (Readers with such a window need no time of their own, and writers exclude one
// another, so no other holds can cover it together.)
func (p *part) fitAmongReaders(spans []span) bool {
	if !p.sharing {
		return true
	}
	var readers, writers []span
	for _, x := range spans {
		switch {
		case x.shared && x.start(certain) < x.end(certain):
			readers = append(readers, x)
		case !x.shared && x.end(certain) <= x.start(certain):
			writers = append(writers, x)
		}
	}
	sortSpans(readers, certain)
	sortSpans(writers, certain)
	type cover struct {
		stretch
		first, last int32
	}
	var covers []cover
	for _, x := range readers {
		n := len(covers)
		if n == 0 || x.start(certain) >= covers[n-1].to {
			covers = append(covers, cover{stretch{x.start(certain), x.end(certain)}, x.at, x.at})
			continue
		}
		if c := &covers[n-1]; x.end(certain) > c.to {
			c.to, c.last = x.end(certain), x.at
		}
	}
	fit := true
	for _, w := range writers {
		k, _ := slices.BinarySearchFunc(covers, w.end(certain), func(c cover, t int64) int { return cmp.Compare(c.from, t) })
		if k == 0 || w.start(certain) >= covers[k-1].to {
			continue
		}
		fit = false
		c := covers[k-1]
		p.rep.Breaches[DoubleHold]++
		p.keep(Witness{Class: DoubleHold, Key: p.key, From: w.end(certain), To: w.start(certain)}, p.grantOf(w.at), p.grantOf(c.first), p.grantOf(c.last))
	}
	return fit
}
