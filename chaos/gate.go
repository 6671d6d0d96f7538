package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
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

// turns hands the one gate to the faults that may need it, in their order: to
// each when all before it have done with it. It is safe for concurrent use.
type turns struct {
	mu   sync.Mutex
	left []bool // by turn
}

func (t *turns) next() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = append(t.left, false)
	return len(t.left) - 1
}

// came reports whether all before a turn have left.
func (t *turns) came(turn int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !slices.Contains(t.left[:turn], false)
}

func (t *turns) leave(turn int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left[turn] = true
}

// noTurn is that of a fault that does not need the gate.
const noTurn = -1

// openGate lets the client that stands there go on.
func (f *fault) openGate() {
	if f.atGate {
		f.atGate = false
		f.Gate.Open()
	}
}

// leaveGate lets the next fault have the gate.
func (f *fault) leaveGate() {
	f.openGate()
	if f.turn != noTurn {
		f.gate.leave(f.turn)
	}
}

// wantsHeld reports whether the fault had better meet its holder in the critical
// section: what is done to the wire or the clock of a client at work takes
// longer than a short hold lasts.
func (f *fault) wantsHeld() bool {
	switch {
	case f.Step != "" || f.After > 0 || f.Gate == nil:
		return false
	case f.kind.Target == scenario.TargetServing || f.about.AboutHold:
		return true
	}
	return f.kind.OnHolder() && !f.about.StopsProcess
}

// catch waits at the gate for the nth client that comes to a step, or until
// enough returns true. The error is the reason of a miss; then no client is left
// at the gate.
func (f *fault) catch(ctx context.Context, step string, nth int, enough func() bool) (h Holding, came bool, err error) {
	if f.Gate == nil {
		return Holding{}, false, errors.New("no client can be met at a step here")
	}
	for !f.gate.came(f.turn) {
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
			f.atGate = true
			return h, true, nil
		}
		switch {
		case enough():
			err = nil
		case f.late():
			err = fmt.Errorf("no client came to the step %q in time", step)
		case f.sleep(ctx, time.Millisecond) != nil:
			err = fmt.Errorf("the run ended before a client came to the step %q", step)
		default:
			continue
		}
		switch {
		case f.Gate.Disarm():
			return Holding{}, false, err
		case last > stopPatience:
			f.Gate.Open() // whichever client it was
			return Holding{}, false, fmt.Errorf("a client came to the step %q and vanished", step)
		default:
			time.Sleep(time.Millisecond) // also when ctx is over
			last += time.Millisecond
		}
	}
}

// never is not enough.
func never() bool { return false }
