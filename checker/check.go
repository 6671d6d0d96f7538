package checker

import (
	"runtime"
	"slices"
	"sync"

	"github.com/lockbench/lockbench/history"
)

// Check judges h, whose calls may come in any order, and does not change h. It is
// safe for concurrent use, and judges as many keys at once as there are
// processors.
func Check(h *history.History, o Options) Report {
	j := surveyed(h).Judge(o)
	keys := byKey(h.Calls)
	todo := make(chan uint32)
	var wg sync.WaitGroup
	for range min(len(keys), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for key := range todo {
				of := keys[key]
				for v := j.Open(key, len(of)); v != nil; v = v.Done() {
					for _, i := range of {
						v.Visit(&h.Calls[i])
					}
				}
			}
		})
	}
	for key := range keys {
		todo <- key
	}
	close(todo)
	wg.Wait()
	return j.Report()
}

func surveyed(h *history.History) *Survey {
	s := NewSurvey(h.Streams, h.Damage)
	for i := range h.Calls {
		s.Add(&h.Calls[i])
	}
	return s
}

// byKey lists the calls of each key.
func byKey(calls []history.Call) map[uint32][]int32 {
	count := map[uint32]int{}
	batches := map[history.Attempt][]uint32{} // and their keys
	for i := range calls {
		c := &calls[i]
		count[c.Key]++
		if c.Kind == history.KindAlso {
			batches[c.Attempt] = nil
		}
	}
	if len(batches) > 0 {
		for i := range calls {
			c := &calls[i]
			list, ok := batches[c.Attempt]
			if ok && ofAttempt(c) && !slices.Contains(list, c.Key) {
				batches[c.Attempt] = append(list, c.Key)
			}
		}
	}
	keys := make(map[uint32][]int32, len(count))
	for key, n := range count {
		keys[key] = make([]int32, 0, n)
	}
	for i := range calls {
		c := &calls[i]
		if list := batches[c.Attempt]; len(list) > 0 && ofAttempt(c) {
			for _, key := range list {
				keys[key] = append(keys[key], int32(i))
			}
			continue
		}
		keys[c.Key] = append(keys[c.Key], int32(i))
	}
	return keys
}

// ofAttempt reports whether c concerns the lock, not the register.
func ofAttempt(c *history.Call) bool {
	return c.Kind != history.KindRead && c.Kind != history.KindWrite && c.Kind != history.KindFinal
}
