package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/scenario"
)

// The places of the workload at which a client holds the lock: in the critical
// section, and when its release is on record but not sent.
const (
	placeHeld      = "held"
	placeReleasing = "releasing"
)

// longHold is how old a hold must be that a fault beside the gate may rely on:
// what it does takes a fraction of that.
const longHold = 100 * time.Millisecond

// turns hands the one gate to the faults that may need it, in their order.
type turns struct{ last chan struct{} }

// turn is a fault's right to the gate.
type turn struct {
	before <-chan struct{} // closed when those before have done with it; nil: there are none
	done   chan struct{}   // closed when we have; nil: the fault has no right to the gate
	stands bool            // a client stands there until we open it
}

func (t *turns) next() turn {
	mine := turn{before: t.last, done: make(chan struct{})}
	t.last = mine.done
	return mine
}

// turnCame reports whether those before have done with the gate.
func (f *fault) turnCame() bool {
	if f.gate.before == nil {
		return true
	}
	select {
	case <-f.gate.before:
		return true
	default:
		return false
	}
}

// openGate lets the client that stands there go on.
func (f *fault) openGate() {
	if f.gate.stands {
		f.gate.stands = false
		f.Gate.Open()
	}
}

// leaveGate lets the next fault have the gate.
func (f *fault) leaveGate() {
	if f.gate.done != nil {
		f.openGate()
		close(f.gate.done)
		f.gate.done = nil
	}
}

// wantsHeld reports whether the fault had better meet its holder in the critical
// section: what is done to the wire or the clock of a client at work takes
// longer than a short hold lasts.
func (f *fault) wantsHeld() bool {
	switch {
	case f.Step != "" || f.After > 0 || f.Gate == nil:
		return false
	case f.kind.Target == scenario.TargetServing || f.kind.Action == scenario.ActEvict:
		return true
	}
	return f.kind.OnHolder() && !signalled(f.kind.Action)
}

// catch waits at the gate for the nth client that comes to a step, or until
// something else is enough. The error is the reason of a miss; then nobody is
// left at the gate.
func (f *fault) catch(ctx context.Context, step string, nth int, enough func() bool) (h Holding, came bool, err error) {
	if f.Gate == nil {
		return Holding{}, false, errors.New("no client can be met at a step here")
	}
	for !f.turnCame() {
		switch {
		case enough():
			return Holding{}, false, nil
		case f.late():
			return Holding{}, false, errors.New("another fault had the gate all the time")
		case f.sleep(ctx, time.Millisecond) != nil:
			return Holding{}, false, errors.New("the run ended while another fault had the gate")
		}
	}
	if err := f.Gate.Arm(step, nth); err != nil {
		return Holding{}, false, err
	}
	last := time.Duration(0) // for which a client that has come at the last moment was waited for
	for {
		if h, ok := f.Gate.Caught(); ok {
			f.gate.stands = true
			return h, true, nil
		}
		var give error
		up := enough()
		switch {
		case up:
		case f.late():
			give = fmt.Errorf("no client came to the step %q in time", step)
		default:
			if f.sleep(ctx, time.Millisecond) == nil {
				continue
			}
			give = fmt.Errorf("the run ended before a client came to the step %q", step)
		}
		switch {
		case f.Gate.Disarm():
			return Holding{}, false, give
		case last > stopPatience:
			f.Gate.Open() // whoever it was
			return Holding{}, false, fmt.Errorf("a client came to the step %q and vanished", step)
		default:
			time.Sleep(time.Millisecond) // also when ctx is over
			last += time.Millisecond
		}
	}
}

// never is not enough.
func never() bool { return false }
