package checker

import (
	"cmp"
	"slices"
)

// timed is something of a number at some time.
type timed struct {
	at     int64
	number int32
}

// sortTimed sorts list by time, and by tie where times are equal.
func sortTimed(list []timed, tie func(a, b int32) int) {
	sortRuns(list, func(a, b timed) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return tie(a.number, b.number)
	})
}

// sortRuns sorts list. It is fast if list consists of a few stretches that are
// sorted already, as what is read client by client does, and no slower than
// others if not.
func sortRuns[T any](list []T, compare func(a, b T) int) {
	var ends []int // of the sorted stretches
	for i := 1; i < len(list); i++ {
		if compare(list[i-1], list[i]) > 0 {
			ends = append(ends, i)
		}
	}
	if len(ends) == 0 {
		return
	}
	if len(ends) > len(list)/8 {
		slices.SortFunc(list, compare)
		return
	}
	ends = append(ends, len(list))
	from, to := list, make([]T, len(list))
	for len(ends) > 1 {
		joined, begin := ends[:0], 0
		for k := 0; k < len(ends); k += 2 {
			middle, end := ends[k], ends[min(k+1, len(ends)-1)]
			merge(to[begin:end], from[begin:middle], from[middle:end], compare)
			joined, begin = append(joined, end), end
		}
		ends = joined
		from, to = to, from
	}
	if &from[0] != &list[0] {
		copy(list, from)
	}
}

// merge merges the sorted a and b into to.
func merge[T any](to, a, b []T, compare func(a, b T) int) {
	for i := range to {
		if len(b) == 0 || len(a) > 0 && compare(a[0], b[0]) <= 0 {
			to[i], a = a[0], a[1:]
		} else {
			to[i], b = b[0], b[1:]
		}
	}
}
