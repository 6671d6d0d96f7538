package workloads

import (
	"sync/atomic"

	"github.com/lockbench/lockbench/history"
)

// phases say to which part of the run a stamp belongs. The end comes nearer
// when the load is stopped early.
type phases struct {
	windowStart int64
	end         atomic.Int64
}

func (p *phases) flags(stamp int64) history.Flags {
	switch {
	case stamp < p.windowStart:
		return history.FlagWarmup
	case stamp >= p.end.Load():
		return history.FlagDrain
	}
	return 0
}

// recorder writes one client's calls to its history, and what the client is
// doing to its slot of the board, in the order that the board promises.
//
// A call's phase is only known from its invoke stamp, so its flag is written
// with the return; a call that stays open has none, but its stamp decides.
type recorder struct {
	hist   *history.Writer
	clock  history.Clock
	slot   *slot
	phases *phases

	invoked  int64 // stamp of the open call
	returned int64 // newest stamp of a call that is not open
}

// begin records that a call is about to be sent. After an error it must not
// be: nothing is recorded.
func (r *recorder) begin(op *history.Op) error {
	at, err := r.hist.Begin(op)
	r.invoked = at
	return err
}

// end records the return and answers its stamp.
func (r *recorder) end(res *history.Result) int64 {
	res.Flags |= r.phases.flags(r.invoked)
	r.returned = r.hist.End(res)
	return r.returned
}

// past records a call of the present round that has not been the client's own,
// unless it came between its calls in part only.
func (r *recorder) past(op *history.Op, res *history.Result, invoked, returned int64) error {
	if invoked < r.returned || returned < invoked {
		return nil
	}
	res.Flags |= r.phases.flags(invoked)
	r.returned = returned
	return r.hist.Past(op, res, invoked, returned)
}

// note records something that the client knows and that is no call, about the
// acquire that comes next or is under way.
func (r *recorder) note(op *history.Op) error {
	at, err := r.hist.Point(op, &history.Result{Outcome: history.Accepted, Flags: r.phases.flags(r.clock.Now())})
	r.returned = max(r.returned, at)
	return err
}

// acquire records an acquire and shows it.
func (r *recorder) acquire(op *history.Op) error {
	if err := r.begin(op); err != nil {
		return err
	}
	r.slot.acquiring(op.Key, op.Flags&history.FlagShared != 0, &op.Attempt, r.invoked)
	return nil
}

// acquired records the end of an acquire, and shows the hold if it is one.
func (r *recorder) acquired(res *history.Result) int64 {
	at := r.end(res)
	if res.Outcome == history.Held {
		r.slot.holding(at)
	}
	return at
}

// release shows that the hold is over, then records that the release is about
// to be sent.
func (r *recorder) release(op *history.Op) error {
	r.slot.releasing()
	return r.begin(op)
}

// lost records that the client observed the loss of its hold.
func (r *recorder) lost(op *history.Op, flags history.Flags) error {
	r.slot.releasing()
	flags |= r.phases.flags(r.clock.Now())
	at, err := r.hist.Point(op, &history.Result{Outcome: history.Lost, Flags: flags})
	r.invoked, r.returned = at, at
	return err
}
