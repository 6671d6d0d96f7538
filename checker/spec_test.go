package checker

import (
	"math"

	"github.com/anishathalye/porcupine"

	"github.com/lockbench/lockbench/history"
)

// spec is a lock as a sequential object, for a general search to decide what
// the rules decide by inequalities.
type spec struct {
	leased    bool // a hold may end at any moment
	reentrant bool
	fencing   bool
}

// lockState is the lock's state: who holds, by number of attempt.
type lockState struct {
	holders, cleaned uint32
	token            uint64
}

// request is a call with what the search needs of it.
type request struct {
	call    history.Call
	n       int
	exclude uint32 // the attempts that cannot hold beside it
}

// fits reports whether the calls fit the spec in some order.
func (s spec) fits(h *history.History) bool {
	index := map[history.Attempt]int{}
	var owner []uint32
	var shared []bool
	for _, c := range h.Calls {
		if _, ok := index[c.Attempt]; !ok {
			index[c.Attempt] = len(index)
			owner, shared = append(owner, c.Client), append(shared, c.Flags&history.FlagShared != 0)
		}
	}
	if len(index) > 32 {
		panic("too many attempts to search")
	}
	var ops []porcupine.Operation
	for i, c := range h.Calls {
		if c.Outcome == history.Failed || c.Kind == history.KindLost {
			continue
		}
		r := request{call: c, n: index[c.Attempt]}
		for m := range owner {
			if !(s.reentrant && owner[m] == c.Client && m != r.n || shared[m] && shared[r.n]) {
				r.exclude |= 1 << m
			}
		}
		op := porcupine.Operation{ClientId: i, Input: r, Call: c.Invoke, Return: returned(&call{Invoke: c.Invoke, Return: c.Return, Outcome: c.Outcome})}
		if c.Outcome == history.Unknown || c.Outcome == history.Open {
			op.Return = math.MaxInt64
		}
		ops = append(ops, op)
	}
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{lockState{}} },
		Step: func(state, in, _ any) []any { return s.step(state.(lockState), in.(request)) },
	}
	return porcupine.CheckOperations(model.ToModel(), ops)
}

// step returns the states that the request may lead to.
func (s spec) step(before lockState, r request) []any {
	var next []any
	// Of a lease, any of the holders may have ended first.
	for left := before.holders; ; left = (left - 1) & before.holders {
		st := before
		st.holders = left
		s.serve(st, r, func(st lockState) { next = append(next, st) })
		if !s.leased || left == 0 {
			return next
		}
	}
}

func (s spec) serve(st lockState, r request, to func(lockState)) {
	me := uint32(1) << r.n
	open := r.call.Outcome == history.Unknown || r.call.Outcome == history.Open
	mine := st.holders&me != 0
	taken := st
	taken.holders |= me
	freed := st
	freed.holders &^= me
	switch r.call.Kind {
	case history.KindAcquire, history.KindTry:
		free := st.holders&r.exclude == 0
		switch {
		case open:
			to(st)
			if free && st.cleaned&me == 0 {
				to(taken)
			}
		case r.call.Outcome == history.Busy:
			if !free {
				to(st)
			}
		case free && (!s.fencing || r.call.Fence > st.token):
			taken.token = r.call.Fence
			to(taken)
		}
	case history.KindRelease, history.KindCleanup:
		switch {
		case open:
			to(freed)
		case r.call.Outcome == history.Released && r.call.Kind == history.KindCleanup:
			freed.cleaned |= me // what it removed does not come back
			to(freed)
		case (r.call.Outcome == history.Released) == mine:
			to(freed)
		}
	case history.KindExtend:
		if open || (r.call.Outcome == history.Extended) == mine {
			to(st)
		}
	}
}
