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

// sortTimed sorts list by time, and by tie where times are equal.
func sortTimed(list []timed, tie func(a, b int32) int) {
	slices.SortFunc(list, func(a, b timed) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return tie(a.number, b.number)
	})
}
