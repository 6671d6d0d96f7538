package workloads

import (
	"context"
	"slices"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// steps is told of every named step that one client comes to. It counts them,
// records when an attempt has its place in the queue, and catches the client
// where the board's gate says so. Like its client it belongs to one goroutine.
type steps struct {
	rec    *recorder
	call   *history.Op // under way
	gate   *gate
	client uint32
	names  []impls.Step
	counts []int64 // within the window, by the index of names
	queues bool    // the recipe serves its waiters in order: a waiter has a place

	// open is the acquire under way that has no place yet.
	open    bool
	acquire history.Op
	err     error // why a place could not be recorded
}

func newSteps(rec *recorder, call *history.Op, g *gate, client uint32, info impls.Info) *steps {
	names := Steps(info)
	return &steps{
		rec: rec, call: call, gate: g, client: client, names: names, counts: make([]int64, len(names)),
		queues: info.Promises(impls.Ordered),
	}
}

// Reach implements impls.Steps.
func (s *steps) Reach(_ context.Context, step impls.Step) {
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
		s.gate.come(s.client, n, s.call)
	}
}

// begin is told that an acquire is about to be sent.
func (s *steps) begin(op *history.Op) {
	if s.queues {
		s.open = true
		s.acquire = history.Op{Kind: history.KindEnqueued, Flags: op.Flags, Key: op.Key, Attempt: op.Attempt}
	}
}

// end is told that it has returned. The error is why not everything of it could
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
}
