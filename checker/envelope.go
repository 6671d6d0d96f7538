package checker

import (
	"cmp"
	"slices"
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
func (p *part) envelopes(refused []refusal, items []item) {
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
	var forReading, forWriting []refusal
	for _, r := range refused {
		if p.attempts[r.at].shared {
			forReading = append(forReading, r)
		} else {
			forWriting = append(forWriting, r)
		}
	}
	p.lonely(forReading, alone)
	p.lonely(forWriting, all)
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
