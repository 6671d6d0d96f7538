package workloads

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// steps is called at every named step of one client. It counts them,
// records when an attempt has its place in the queue, and catches the client
// where the board's gate says so. Like its client it belongs to one goroutine,
// except at StepRenewing, which may come from any.
type steps struct {
	rec    *recorder
	call   *history.Op // under way
	gate   *gate
	client uint32
	names  []impls.Step
	counts []int64 // within the window, by the index of names
	queues bool    // the recipe serves its waiters in order: a waiter has a place

	renewing int // number of StepRenewing; negative if the recipe does not list it
	renewals atomic.Int64

	// open is the acquire under way that has no place yet.
	open    bool
	acquire history.Op
	err     error // why a place could not be recorded
}

func newSteps(rec *recorder, call *history.Op, g *gate, client uint32, info impls.Info) *steps {
	names := Steps(info)
	return &steps{
		rec: rec, call: call, gate: g, client: client, names: names, counts: make([]int64, len(names)),
		queues: info.Promises(impls.Ordered), renewing: slices.Index(names, impls.StepRenewing),
	}
}

// Reach implements impls.Steps.
func (s *steps) Reach(_ context.Context, step impls.Step) {
	if step == impls.StepRenewing {
		s.renew()
		return
	}
	n := slices.Index(s.names, step)
	if n < 0 { // the recipe does not list it: it counts, and cannot be aimed at
		n = len(s.names)
		s.names, s.counts = append(s.names, step), append(s.counts, 0)
	}
	if s.rec.phases.flags(s.rec.clock.Now()) == 0 {
		s.counts[n]++
	}
	if s.open && step == impls.StepWaiting {
		s.open = false
		if err := s.rec.note(&s.acquire); s.err == nil {
			s.err = err
		}
	}
	if s.gate.word.Load() != 0 {
		s.gate.come(s.client, n, s.call.Key, &s.call.Attempt)
	}
}

// renew is Reach of StepRenewing. What the client's own goroutine writes is not
// looked at; the board shows whose hold it is.
func (s *steps) renew() {
	p := s.rec.phases
	// Until the load has its times nothing is counted, nor are they to be read.
	if p.end.Load() != 0 && p.flags(s.rec.clock.Now()) == 0 {
		s.renewals.Add(1)
	}
	if s.gate.word.Load() != 0 && s.renewing >= 0 {
		st := s.rec.slot.status(s.client)
		s.gate.come(s.client, s.renewing, st.Key, &st.Attempt)
	}
}

// place is called when the client has come to a place of its load with an
// attempt; it reports whether the client had to wait there.
func (s *steps) place(p impls.Step, key uint32, a *history.Attempt) (stood bool) {
	return s.gate.word.Load() != 0 && s.gate.come(s.client, slices.Index(s.names, p), key, a)
}

// begin is called before an acquire is sent.
func (s *steps) begin(op *history.Op) {
	if s.queues {
		s.open = true
		s.acquire = history.Op{Kind: history.KindEnqueued, Flags: op.Flags, Key: op.Key, Attempt: op.Attempt}
	}
}

// end is called after it has returned. The error is why not everything of it could
// be recorded.
func (s *steps) end() error {
	s.open = false
	return s.err
}

// add adds the counts to those of other clients.
func (s *steps) add(to map[string]int64) {
	for i, n := range s.counts {
		if n > 0 {
			to[string(s.names[i])] += n
		}
	}
	if n := s.renewals.Load(); n > 0 {
		to[string(impls.StepRenewing)] += n
	}
}
