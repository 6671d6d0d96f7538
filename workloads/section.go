package workloads

import (
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// section is one critical section: from the grant to the moment before the
// release.
type section struct {
	*client
	gone bool // the client knows that it has lost the lock, and works no more
}

// newest is the grant that reports the state of the lock: where a client locked several
// times over, the one that is younger than every renewal before it.
func (s *section) newest() *grant { return &s.grants[len(s.grants)-1] }

// wait holds the lock until the stamp, or until the loss of it is observed, or
// the load is stopped. Renewals are recorded as they come.
func (s *section) wait(until int64) {
	for !s.observe() && s.err == nil {
		left := time.Duration(until - s.clock.Now())
		if left <= 0 {
			return
		}
		if s.spec.Scenario.Workload.WatchLease {
			if end := s.newest().hold.LeaseEnd(); !end.IsZero() {
				left = min(left, end.Sub(s.system.Now()))
			}
		}
		s.timer.Reset(max(left, 0))
		select {
		case <-s.timer.C:
		case <-s.newest().lost: // nil if the recipe does not report it
		case r := <-s.renewals.seen:
			s.err = s.renewed(r)
		case <-s.quit:
			s.observe()
			return
		}
	}
}

// hold keeps the lock for d from the grant on, or looks once whether it is lost.
func (s *section) hold(granted int64, d time.Duration) {
	if d > 0 {
		s.wait(granted + int64(d))
	} else {
		s.observe()
	}
}

// observe looks whether the hold is lost, as the lock reports or, if the load
// watches it, by the lease's end, and records it the first time, for
// every grant: they are of one lock. The lease's end is asked anew each time,
// since renewals move it.
func (s *section) observe() bool {
	if s.gone {
		return true
	}
	var flags history.Flags
	select {
	case <-s.newest().lost:
		s.gone = true
	default:
		if s.spec.Scenario.Workload.WatchLease {
			end := s.newest().hold.LeaseEnd()
			s.gone = !end.IsZero() && !s.system.Now().Before(end)
			flags = history.FlagLeaseTimer
		}
	}
	if s.gone {
		s.catchUp()
		for i := range s.grants {
			g := &s.grants[i]
			s.op = history.Op{Kind: history.KindLost, Flags: s.want.flags, Key: s.want.key, Attempt: g.attempt, Fence: g.hold.Fence()}
			if s.err = s.rec.lost(&s.op, flags); s.err != nil {
				break
			}
		}
	}
	return s.gone
}

// guard is a client's way to the guarded registers.
type guard struct {
	register *registerClient
	cells    []guardCell // the plain one first
}

type guardCell struct {
	fenced bool
	// value is what the section read; known says that it could.
	value uint64
	known bool
}

// newGuard connects to the registers that the load names.
func newGuard(path, which string) (*guard, error) {
	r, err := openRegister(path)
	if err != nil {
		return nil, err
	}
	g := &guard{register: r}
	if which != scenario.GuardFenced {
		g.cells = append(g.cells, guardCell{fenced: false})
	}
	if which == scenario.GuardFenced || which == scenario.GuardBoth {
		g.cells = append(g.cells, guardCell{fenced: true})
	}
	return g, nil
}

// read begins the section: it reads every register.
func (s *section) read() {
	lost := s.observe()
	for i := range s.guard.cells {
		cell := &s.guard.cells[i]
		cell.known = false
		if s.err == nil && !lost {
			cell.value, cell.known = s.call(history.KindRead, cell.fenced, 0)
		}
	}
}

// write ends the section: it writes one more than it read. A client that knows
// that it has lost the lock writes nothing, nor where it could not read. It
// looks once for all registers: a loss seen between two of them would spare
// one what the other waits for, and nothing could be compared.
func (s *section) write() {
	lost := s.observe()
	for i := range s.guard.cells {
		cell := &s.guard.cells[i]
		if cell.known && s.err == nil && !lost {
			s.call(history.KindWrite, cell.fenced, cell.value+1)
		}
	}
}

// call carries out and records one call on a register; ok says that the
// register accepted it.
func (s *section) call(kind history.Kind, fenced bool, value uint64) (read uint64, ok bool) {
	if s.catchUp(); s.err != nil {
		return 0, false
	}
	g := s.newest()
	s.op = history.Op{Kind: kind, Flags: s.want.flags, Key: s.want.key, Attempt: g.attempt, Fence: g.hold.Fence(), Arg: value}
	if fenced {
		s.op.Flags |= history.FlagFenced
	}
	if s.err = s.rec.begin(&s.op); s.err != nil {
		return 0, false
	}
	a, err := s.guard.register.do(registerCall{
		write: kind == history.KindWrite, fenced: fenced, key: s.want.key, token: s.op.Fence, value: value,
	})
	switch {
	case err != nil:
		s.res = history.Result{Outcome: history.Unknown}
	case a.rejected:
		s.res = history.Result{Outcome: history.Rejected}
	default:
		s.res = history.Result{Outcome: history.Accepted}
		if kind == history.KindRead {
			s.res.Value = a.value
		}
		if a.stale {
			s.res.Flags = history.FlagStale
		}
	}
	s.rec.end(&s.res)
	return a.value, err == nil && !a.rejected
}
