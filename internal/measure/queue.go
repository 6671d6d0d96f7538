package measure

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// queued is one attempt in a queue: from the moment its place was certain until
// its acquire returned, granted or not.
type queued struct {
	place    int64 // stamp; 0: it has no place, or may have lost it
	invoke   int64
	returned int64 // stamp
	held     bool
	shared   bool
	barred   bool // a place that it is given does not count
	gone     bool // it waits no more
	attempt  history.Attempt
}

// inversions counts the grants that overtook a client with an earlier place in
// the queue. Only certain cases count: the overtaken client had its place before
// the granted one sent its request, and it still waits after the grant. So
// neither slow answers nor clocks cause an inversion. Readers that come after a
// reader pass with it, and overtake none.
func (d *derivation) inversions() error {
	const field = "order_inversions"
	if !d.info.Promises(impls.Ordered) {
		d.unmeasured(field, "the recipe promises no order, and shows no queue")
		return nil
	}
	// A client that gets its place within the waiting call does not know when it
	// got it.
	if !slices.ContainsFunc(d.samples.Workers, func(w scenario.WorkerSample) bool { return w.Steps[string(impls.StepWoken)] > 0 }) {
		d.unmeasured(field, "no client was woken to look at its place, so the time when it had one is unknown")
		return nil
	}
	paused := d.paused()
	queues := map[uint32]*queue{}
	err := d.calls.Each(func(c *history.Call) {
		q := queues[c.Key]
		if q == nil {
			q = &queue{doubt: 2 * d.samples.ClockUncertaintyNS, waits: map[history.Attempt]*queued{}}
			queues[c.Key] = q
		}
		switch {
		case c.Kind == history.KindEnqueued:
			q.enqueued(c)
		case c.Kind == history.KindAcquire && c.Flags&history.FlagWarmup == 0:
			q.acquire(c, d.barred(c, paused))
		}
	})
	if err != nil {
		return err
	}
	placed, n := false, int64(0)
	for _, q := range queues {
		q.settle(math.MaxInt64)
		placed = placed || q.placed
		n += q.overtaken
	}
	if !placed {
		d.unmeasured(field, "no client stood in the queue within the window")
		return nil
	}
	d.result.OrderInversions = ptr(n)
	return nil
}

// barred reports whether the client of an acquire was stopped or died meanwhile:
// then it may have lost its place.
func (d *derivation) barred(c *history.Call, paused []checker.Interval) bool {
	if _, dead := d.dead[c.Client]; dead {
		return true
	}
	return slices.ContainsFunc(paused, func(p checker.Interval) bool {
		return p.Client == c.Client && p.From < d.ended(c) && p.To > c.Invoke
	})
}

// queue is that of one key. Calls come in the order of their invokes.
type queue struct {
	doubt        int64 // stamps of two processes may be off by that
	waits        map[history.Attempt]*queued
	returns      []*queued // that are still to come, in order
	all, writers waiting
	placed       bool
	overtaken    int64
}

func (q *queue) acquire(c *history.Call, barred bool) {
	q.settle(c.Invoke)
	a := &queued{attempt: c.Attempt, invoke: c.Invoke, returned: c.Return, held: c.Outcome == history.Held, shared: c.Flags&history.FlagShared != 0, barred: barred}
	q.waits[c.Attempt] = a
	if c.Outcome == history.Open {
		return
	}
	i, _ := slices.BinarySearchFunc(q.returns, c.Return+1, func(a *queued, at int64) int { return cmp.Compare(a.returned, at) })
	q.returns = slices.Insert(q.returns, i, a)
}

func (q *queue) enqueued(c *history.Call) {
	q.settle(c.Invoke + 1)
	a := q.waits[c.Attempt]
	if a == nil || a.barred || a.gone {
		return
	}
	delete(q.waits, c.Attempt)
	q.placed = true
	a.place = c.Invoke
	heap.Push(&q.all, a)
	if !a.shared {
		heap.Push(&q.writers, a)
	}
}

// settle takes the returns before a stamp.
func (q *queue) settle(before int64) {
	for len(q.returns) > 0 && q.returns[0].returned < before {
		// Equal stamps count as concurrent: those that returned together wait no more.
		n := 0
		for n < len(q.returns) && q.returns[n].returned == q.returns[0].returned {
			q.returns[n].gone = true
			delete(q.waits, q.returns[n].attempt)
			n++
		}
		for _, a := range q.returns[:n] {
			ahead := &q.all
			if a.shared {
				ahead = &q.writers
			}
			if first := ahead.first(); a.held && first != nil && first.place+q.doubt < a.invoke {
				q.overtaken++
			}
		}
		q.returns = q.returns[n:]
	}
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

// first is the client that has waited longest, or nil.
func (w *waiting) first() *queued {
	for w.Len() > 0 && (*w)[0].gone {
		heap.Pop(w)
	}
	if w.Len() == 0 {
		return nil
	}
	return (*w)[0]
}
