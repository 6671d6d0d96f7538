package checker

import (
	"cmp"
	"slices"
)

// timed is a numbered element at some time.
type timed struct {
	at     int64
	number int32
}

// sortTimed sorts list by time, and by tie where times are equal. It merges sorted
// runs if the list has few of them, as a history read client by client does.
func sortTimed(list []timed, tie func(a, b int32) int) {
	compare := func(a, b timed) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return tie(a.number, b.number)
	}
	begins := []int{0} // of the sorted runs
	for i := 1; i < len(list); i++ {
		if compare(list[i-1], list[i]) > 0 {
			begins = append(begins, i)
		}
	}
	if len(begins) > len(list)/8+1 {
		slices.SortFunc(list, compare)
		return
	}
	if len(begins) > 1 {
		aside := make([]timed, 0, begins[len(begins)/2])
		join(list, append(begins, len(list)), &aside, compare)
	}
}

// join sorts list between the first and the last bound; between two adjacent
// bounds list is sorted. It copies only the first half, to aside.
func join(list []timed, bounds []int, aside *[]timed, compare func(a, b timed) int) {
	n := len(bounds) - 1
	if n < 2 {
		return
	}
	join(list, bounds[:n/2+1], aside, compare)
	join(list, bounds[n/2:], aside, compare)
	begin, middle, end := bounds[0], bounds[n/2], bounds[n]
	*aside = append((*aside)[:0], list[begin:middle]...)
	merge(list[begin:end], *aside, list[middle:end], compare)
}

// merge merges the sorted a and b into to; b is the end of to.
func merge(to, a, b []timed, compare func(a, b timed) int) {
	for i := range to {
		if len(a) == 0 {
			return // the rest of b is in its place
		}
		if len(b) == 0 || compare(a[0], b[0]) <= 0 {
			to[i], a = a[0], a[1:]
		} else {
			to[i], b = b[0], b[1:]
		}
	}
}
