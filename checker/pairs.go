package checker

import (
	"cmp"
	"slices"
)

// span is the time that one attempt covers. Two spans clash if each starts
// strictly before the other ends. A span may end before it starts (the grant took
// effect somewhere in between): the same inequality then means that the other
// span must not cover all of it.
type span struct {
	s, e   int64
	u      int64  // uncertainty of its process's clock
	worker uint32 // its process: stamps of one process compare exactly
	shared bool   // for reading: such spans do not clash with one another
	at     int32  // index of the attempt
}

// shift is how to read stamps of different processes.
type shift int64

const (
	possible shift = -1 // widened by their uncertainty
	observed shift = 0
	certain  shift = 1 // narrowed by it
)

func (x span) start(m shift) int64 { return x.s + int64(m)*x.u }
func (x span) end(m shift) int64   { return x.e - int64(m)*x.u }

// clash reports whether x and y overlap for certain.
func clash(x, y span) bool {
	if x.shared && y.shared {
		return false
	}
	m := certain
	if x.worker == y.worker {
		m = observed // by one clock
	}
	return x.start(m) < y.end(m) && y.start(m) < x.end(m)
}

// countClashes counts the clashing pairs among spans, exactly, in O(n log n).
func countClashes(spans []span, m shift) int64 {
	n := countOverlaps(spans, m)
	if readers := sharedOnly(spans); n > 0 && len(readers) > 1 {
		n -= countOverlaps(readers, m)
	}
	return n
}

func sharedOnly(spans []span) []span {
	var shared []span
	for _, x := range spans {
		if x.shared {
			shared = append(shared, x)
		}
	}
	return shared
}

// countOverlaps counts the pairs that would clash if none were shared.
func countOverlaps(spans []span, m shift) int64 {
	if len(spans) < 2 {
		return 0
	}
	uncertain := false
	for _, x := range spans {
		uncertain = uncertain || x.u != 0
	}
	if m == observed || !uncertain {
		return countPlain(spans, observed)
	}
	// Stamps of one process are not shifted against each other: replace their
	// pairs in the shifted count by the observed ones.
	n := countPlain(spans, m)
	byWorker := slices.Clone(spans)
	slices.SortFunc(byWorker, func(a, b span) int { return cmp.Compare(a.worker, b.worker) })
	for i := 0; i < len(byWorker); {
		j := i + 1
		for j < len(byWorker) && byWorker[j].worker == byWorker[i].worker {
			j++
		}
		if j-i > 1 {
			n += countPlain(byWorker[i:j], observed) - countPlain(byWorker[i:j], m)
		}
		i = j
	}
	return n
}

// countPlain counts clashing pairs with every stamp shifted. It subtracts the
// pairs of which one span ends no later than the other starts. Of two spans with
// positive length at most one does; otherwise both may, and the pair must not be
// counted twice.
func countPlain(spans []span, m shift) int64 {
	n := int64(len(spans))
	starts := make([]int64, len(spans))
	ends := make([]int64, len(spans))
	var empty int64 // spans that end no later than they start
	for i, x := range spans {
		starts[i], ends[i] = x.start(m), x.end(m)
		if ends[i] <= starts[i] {
			empty++
		}
	}
	var twice int64
	if empty > 0 {
		twice = (countBothWays(starts, ends) - empty) / 2
	}
	slices.Sort(starts)
	slices.Sort(ends)
	var apart int64
	done := 0
	for _, s := range starts {
		for done < len(ends) && ends[done] <= s {
			done++
		}
		apart += int64(done)
	}
	return n*(n-1)/2 - (apart - empty - twice)
}

// countBothWays counts the ordered pairs (g, h), g = h included, with
// h.end <= g.start and g.end <= h.start.
func countBothWays(starts, ends []int64) int64 {
	ranks := slices.Clone(starts)
	slices.Sort(ranks)
	byEnd := make([]int32, len(ends))
	byStart := make([]int32, len(starts))
	for i := range ends {
		byEnd[i], byStart[i] = int32(i), int32(i)
	}
	slices.SortFunc(byEnd, func(a, b int32) int { return cmp.Compare(ends[a], ends[b]) })
	slices.SortFunc(byStart, func(a, b int32) int { return cmp.Compare(starts[a], starts[b]) })
	tree := make(fenwick, len(ranks)+1)
	var total, inserted int64
	next := 0
	for _, g := range byStart {
		for next < len(byEnd) && ends[byEnd[next]] <= starts[g] {
			rank, _ := slices.BinarySearch(ranks, starts[byEnd[next]])
			tree.add(rank)
			inserted++
			next++
		}
		below, _ := slices.BinarySearch(ranks, ends[g]) // starts below g's end
		total += inserted - tree.below(below)
	}
	return total
}

// fenwick counts ranks.
type fenwick []int64

func (f fenwick) add(rank int) {
	for i := rank + 1; i < len(f); i += i & -i {
		f[i]++
	}
}

// below counts the ranks added that are less than rank.
func (f fenwick) below(rank int) int64 {
	var n int64
	for i := rank; i > 0; i -= i & -i {
		n += f[i]
	}
	return n
}

// sortSpans sorts spans by start, shortest first, so that a span without length
// comes before the others that start with it.
func sortSpans(spans []span, m shift) {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start(m), b.start(m)), cmp.Compare(a.end(m), b.end(m)), cmp.Compare(a.at, b.at))
	})
}

// groups calls f for each group of at least two spans connected by clashes. For
// spans of positive length the groups are exactly the connected ones; with spans
// that end before they start, or shared ones, a group may join several. It sorts
// spans, and passes parts of it or of a copy to f.
func groups(spans []span, m shift, f func(group []span)) {
	sortSpans(spans, m)
	if len(sharedOnly(spans)) > 0 {
		spans = clashing(spans, m)
	}
	first := 0
	var reach int64
	for i, x := range spans {
		if i > first && reach <= x.start(m) {
			if i-first > 1 {
				f(spans[first:i])
			}
			first = i
		}
		if i == first {
			reach = x.end(m)
		}
		reach = max(reach, x.end(m))
	}
	if len(spans)-first > 1 {
		f(spans[first:])
	}
}

// clashing keeps the spans that may clash with another: readers that meet only
// readers join no group. spans is sorted.
func clashing(spans []span, m shift) []span {
	// The two latest ends among the spans that start before a moment, and the
	// latest of those that are not shared.
	type reach struct {
		one, two, alone int64
		at              int32
	}
	ahead := make([]reach, len(spans)+1)
	ahead[0] = reach{-forever, -forever, -forever, none}
	for i, x := range spans {
		r := ahead[i]
		switch e := x.end(m); {
		case e > r.one:
			r.one, r.two, r.at = e, r.one, x.at
		default:
			r.two = max(r.two, e)
		}
		if !x.shared {
			r.alone = max(r.alone, x.end(m))
		}
		ahead[i+1] = r
	}
	var kept []span
	for _, x := range spans {
		k, _ := slices.BinarySearchFunc(spans, x.end(m), func(y span, t int64) int { return cmp.Compare(y.start(m), t) })
		r := ahead[k]
		furthest := r.one
		switch {
		case x.shared:
			furthest = r.alone
		case r.at == x.at:
			furthest = r.two
		}
		if furthest > x.start(m) {
			kept = append(kept, x)
		}
	}
	return kept
}

// findClashes returns the first certain clashes of a group, up to limit, the
// earlier span first.
func findClashes(group []span, limit int) [][2]span {
	var found [][2]span
	sortSpans(group, observed)
	meeting(group, func(y, x span) bool {
		if clash(y, x) {
			found = append(found, [2]span{y, x})
		}
		return len(found) < limit
	})
	return found
}

// meeting calls f for the pairs of sorted spans in which x starts before the
// earlier y has ended and which are not both shared, until f returns false.
func meeting(sorted []span, f func(y, x span) bool) {
	var readers, writers []span // still open
	for _, x := range sorted {
		more := true
		visit := func(open []span) []span {
			kept := open[:0]
			for _, y := range open {
				if y.e <= x.s {
					continue
				}
				kept = append(kept, y)
				more = more && f(y, x)
			}
			return kept
		}
		writers = visit(writers)
		if x.shared {
			readers = append(readers, x)
		} else {
			readers = visit(readers)
			writers = append(writers, x)
		}
		if !more {
			return
		}
	}
}
