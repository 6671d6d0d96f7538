package measure

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// queued is one attempt in a queue: from the moment its place was certain until
// its acquire returned, granted or not.
type queued struct {
	key      uint32
	place    int64 // stamp; 0: it got the lock without a place
	call     *history.Call
	shared   bool
	returned bool // it waits no more
}

// inversions counts the grants that overtook a client which had its place in
// the queue for longer. Only what is certain counts: the other's place stood
// before the one that was granted had asked at all, and the other waits still
// when the grant is there. So neither slow answers nor clocks accuse anybody.
// Readers that come after a reader pass with it, and overtake nobody.
func (d *derivation) inversions() {
	const field = "order_inversions"
	if !d.info.Promises(impls.Ordered) {
		d.unmeasured(field, "the recipe promises no order, and shows no queue")
		return
	}
	// One whose place the server gives it within the call that waits does not
	// know when it stood there.
	if !slices.ContainsFunc(d.samples.Workers, func(w scenario.WorkerSample) bool { return w.Steps[string(impls.StepWoken)] > 0 }) {
		d.unmeasured(field, "no client was woken to look at its place, so nobody knows when it had one")
		return
	}
	list := d.queue()
	if !slices.ContainsFunc(list, func(q *queued) bool { return q.place > 0 }) {
		d.unmeasured(field, "nobody stood in the queue within the window")
		return
	}
	var n int64
	for len(list) > 0 {
		end := slices.IndexFunc(list, func(q *queued) bool { return q.key != list[0].key })
		if end < 0 {
			end = len(list)
		}
		n += overtaken(list[:end], 2*d.samples.ClockUncertaintyNS)
		list = list[end:]
	}
	d.result.OrderInversions = ptr(n)
}

// queue lists the attempts that waited, or were granted, by key.
func (d *derivation) queue() []*queued {
	paused := d.paused()
	places := map[history.Attempt]int64{}
	calls := d.history.Calls
	for i := range calls {
		if c := &calls[i]; c.Kind == history.KindEnqueued {
			places[c.Attempt] = c.Invoke
		}
	}
	var list []*queued
	for i := range calls {
		c := &calls[i]
		if c.Kind != history.KindAcquire || c.Flags&history.FlagWarmup != 0 {
			continue
		}
		q := &queued{key: c.Key, place: places[c.Attempt], call: c, shared: c.Flags&history.FlagShared != 0}
		// One that was stopped, or died, may have lost its place meanwhile.
		if _, dead := d.dead[c.Client]; dead {
			q.place = 0
		}
		for _, p := range paused {
			if p.Client == c.Client && p.From < d.ended(c) && p.To > c.Invoke {
				q.place = 0
			}
		}
		if q.place > 0 || c.Outcome == history.Held {
			list = append(list, q)
		}
	}
	slices.SortStableFunc(list, func(a, b *queued) int { return cmp.Compare(a.key, b.key) })
	return list
}

// overtaken counts the inversions of one key, where stamps of two processes may
// be off by doubt.
func overtaken(list []*queued, doubt int64) int64 {
	byPlace := slices.Clone(list)
	slices.SortStableFunc(byPlace, func(a, b *queued) int { return cmp.Compare(a.place, b.place) })
	byReturn := slices.DeleteFunc(slices.Clone(list), func(q *queued) bool { return q.call.Outcome == history.Open })
	slices.SortStableFunc(byReturn, func(a, b *queued) int { return cmp.Compare(a.call.Return, b.call.Return) })
	var n int64
	next := 0
	var all, writers waiting
	for len(byReturn) > 0 {
		// Equal stamps count as concurrent: who returned together waits no more.
		now := byReturn[0].call.Return
		var together []*queued
		for len(byReturn) > 0 && byReturn[0].call.Return == now {
			byReturn[0].returned = true
			together = append(together, byReturn[0])
			byReturn = byReturn[1:]
		}
		for ; next < len(byPlace) && byPlace[next].place < now; next++ {
			q := byPlace[next]
			if q.place == 0 || q.returned {
				continue
			}
			heap.Push(&all, q)
			if !q.shared {
				heap.Push(&writers, q)
			}
		}
		for _, q := range together {
			ahead := &all
			if q.shared {
				ahead = &writers
			}
			if first := ahead.first(); q.call.Outcome == history.Held && first != nil && first.place+doubt < q.call.Invoke {
				n++
			}
		}
	}
	return n
}

// waiting is a heap of those that wait, by their places.
type waiting []*queued

func (w waiting) Len() int           { return len(w) }
func (w waiting) Less(i, j int) bool { return w[i].place < w[j].place }
func (w waiting) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *waiting) Push(x any)        { *w = append(*w, x.(*queued)) }
func (w *waiting) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

// first is who has waited longest, or nil.
func (w *waiting) first() *queued {
	for w.Len() > 0 && (*w)[0].returned {
		heap.Pop(w)
	}
	if w.Len() == 0 {
		return nil
	}
	return (*w)[0]
}
