package checker

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// A lock with readers: readers share it, and exclude writers. Two items
// conflict unless both are readers.
//
// A try for writing is refused while anybody has the lock, a try for reading
// while a writer has it. If all outcomes are known, an item x can have the lock
// anywhere within its envelope: from its ac, but not before the rc of the items
// that conflict with it and come earlier, to its rr, but not after the ar of
// those that come later. Handing over from one to the next at any moment
// between the one's rc and the other's ar is possible for each pair by itself,
// and other pairs are not concerned. So a refused try is explained if and only
// if it meets the envelope of an item that conflicts with it.
//
// Of items whose turn is not certain, or may be of no length, only the widest
// bounds are taken, and they narrow nobody's: that accuses nobody wrongly.

// envelopes decides the refused tries of a lock with readers.
func (p *part) envelopes(refused []timed, items []item) {
	var anybody, writers bounds
	for _, x := range items {
		if x.optional || x.rc < x.ar {
			continue
		}
		anybody.add(x)
		if !p.attempts[x.at].shared {
			writers.add(x)
		}
	}
	anybody.sort()
	writers.sort()
	var all, alone []item
	for _, x := range items {
		shared := p.attempts[x.at].shared
		if !x.optional && x.ar <= x.rc {
			against := &anybody
			if shared {
				against = &writers
			}
			x.ac, x.rr = against.narrow(x)
		}
		all = append(all, x)
		if !shared {
			alone = append(alone, x)
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
	p.reportWithoutHolder(forReading, alone)
	p.reportWithoutHolder(forWriting, all)
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

// fitAmongReaders finds the writers for which readers leave no moment: of a
// writer that is only known to have had the lock at some moment between its rc
// and its ar, the readers' holds may cover all of that together, though none
// does alone. (Readers that are known no better need no time of their own, and
// writers exclude one another, so that no other holds can cover it together.)
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
