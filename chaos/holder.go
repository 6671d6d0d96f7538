package chaos

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"syscall"
	"time"

	"github.com/lockbench/lockbench/scenario"
)

// stopPatience limits how long a stopped process may take to stand still.
const stopPatience = 2 * time.Second

// target is a client whose process stands still.
type target struct {
	event   scenario.FaultEvent // says who it is
	proc    Process
	stopped int64  // stamp before it was stopped
	how     string // it was found
}

// resume lets the process go on.
func (t target) resume() error {
	if err := t.proc.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("continue pid %d: %w", t.proc.PID(), err)
	}
	return nil
}

// holderPause stops the process whose client holds a lock for a while.
func (f fault) holderPause(ctx context.Context) error {
	t, err := f.stopHolder(ctx, time.Duration(f.For))
	if t == nil || err != nil {
		return err
	}
	t.event.How = "SIGSTOP; " + t.how
	return f.pause(ctx, t)
}

// holderKill ends the process whose client holds a lock. It is stopped first,
// so that nobody can let go between the look and the kill.
func (f fault) holderKill(ctx context.Context) (killed int, err error) {
	t, err := f.stopHolder(ctx, 0)
	if t == nil || err != nil {
		return 0, err
	}
	return f.kill(t)
}

// kill ends a process that stands still.
func (f fault) kill(t *target) (killed int, err error) {
	// Stamped before the signal, and after the process stood still: it was dead
	// no sooner, and did nothing any more.
	t.event.Event, t.event.How = "injected", "SIGKILL; "+t.how
	if err := f.log(t.event); err != nil {
		return 0, errors.Join(err, t.resume())
	}
	if err := t.proc.Signal(syscall.SIGKILL); err != nil {
		return 0, errors.Join(f.missed(fmt.Sprintf("kill pid %d: %v", t.proc.PID(), err)), t.resume())
	}
	return t.proc.PID(), f.gone(t)
}

// gone waits for the end of a process that was killed.
func (f fault) gone(t *target) error {
	timer := time.NewTimer(stopPatience)
	defer timer.Stop()
	select {
	case <-t.proc.Done():
	case <-timer.C:
		return f.missed(fmt.Sprintf("pid %d did not end within %v of SIGKILL", t.proc.PID(), stopPatience))
	}
	t.event.Event, t.event.AtNS, t.event.How = "effective", 0, "the process has ended"
	return f.log(t.event)
}

// stopHolder stops the process of a client that holds a lock. The holder may
// let go between the look and the stop; so the look is repeated once the
// process stands still, and if the hold is gone the process goes on and the
// next holder is tried. Without a target the miss is on record. What is left of
// the window when it is stopped is at least rest.
func (f fault) stopHolder(ctx context.Context, rest time.Duration) (*target, error) {
	s := f.schedule
	for try := 1; ; try++ {
		// A hold that could not be spanned before the window closes would be
		// cut by the end of the run, not by the fault.
		if s.Clock.Now()+int64(rest) > s.End {
			return nil, f.missed(fmt.Sprintf("no client kept its lock long enough to be stopped while holding it (%d tries)", try-1))
		}
		h, ok := f.pick(try)
		if !ok {
			if err := s.sleep(ctx, time.Millisecond); err != nil {
				return nil, f.missed("the run ended before a holder was found")
			}
			continue
		}
		t, tryAgain, err := f.stopOnce(h, try)
		if !tryAgain || err != nil {
			return t, err
		}
		// A little pause, so that the tries do not become a fault of their own.
		if err := s.sleep(ctx, 5*time.Millisecond); err != nil {
			return nil, f.missed("the run ended before a holder was stopped")
		}
	}
}

// pick chooses among the present holders by a hash of the seed and the event,
// so that the order of goroutines cannot change the choice.
func (f fault) pick(try int) (Holding, bool) {
	holders := f.schedule.Clients.Holders()
	if len(holders) == 0 {
		return Holding{}, false
	}
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%d/%s/%d", f.schedule.Seed, f.id, try)
	return holders[sum.Sum64()%uint64(len(holders))], true
}

// stopOnce answers no target if the holder let go, when tryAgain is true, or
// if it cannot be stopped, when the miss is on record.
func (f fault) stopOnce(h Holding, try int) (t *target, tryAgain bool, err error) {
	t, err = f.aim(h)
	if t == nil || err != nil {
		return nil, false, err
	}
	t.how = fmt.Sprintf("holder found in shared memory, try %d", try)
	ok, err := f.stop(t)
	switch {
	case !ok || err != nil:
		return nil, false, err
	case !f.schedule.Clients.Holds(h):
		return nil, true, t.resume()
	}
	return t, false, nil
}

// stop makes the process of a target stand still; if it does not, ok is false,
// the miss is on record, and the process goes on.
func (f fault) stop(t *target) (ok bool, err error) {
	t.stopped = f.schedule.Clock.Now()
	if err := t.proc.Signal(syscall.SIGSTOP); err != nil {
		return false, f.missed(fmt.Sprintf("stop pid %d: %v", t.proc.PID(), err))
	}
	if err := waitStopped(t.proc.PID(), stopPatience); err != nil {
		return false, errors.Join(f.missed(err.Error()), t.resume())
	}
	return true, nil
}

// aim finds the process of a client, which must host nobody that the fault may
// not hit. Otherwise the miss is on record.
func (f fault) aim(h Holding) (*target, error) {
	proc, hosted, err := f.schedule.Clients.Process(h.Client)
	switch {
	case err != nil:
		return nil, f.missed(err.Error())
	case len(hosted) > 1 && !(f.schedule.Takeover && f.Kind == scenario.HolderKill):
		return nil, f.missed(fmt.Sprintf("the process of client %d hosts %d clients, and %s would hit them all: give each its own (leave workers out)", h.Client, len(hosted), f.Kind))
	}
	t := &target{proc: proc, event: scenario.FaultEvent{Client: &h.Client, Key: &h.Key, PID: proc.PID()}}
	if !h.Attempt.IsZero() {
		t.event.Attempt = h.Attempt.String()
	}
	return t, nil
}

// pause keeps a target stopped for the fault's time.
func (f fault) pause(ctx context.Context, t *target) error {
	t.event.Event, t.event.AtNS = "injected", t.stopped
	if err := f.log(t.event); err != nil {
		return errors.Join(err, t.resume())
	}
	_ = f.schedule.sleep(ctx, time.Duration(f.For)) // an early end heals early; the history then shows a miss

	// Stamped before the signal: until it is sent the process cannot move, so
	// a hold that ends after this stamp ended after the pause.
	t.event.Event, t.event.AtNS, t.event.How = "heal_started", 0, "SIGCONT"
	logErr := f.log(t.event)
	if err := t.resume(); err != nil {
		return errors.Join(logErr, err)
	}
	t.event.Event = "healed"
	return errors.Join(logErr, f.log(t.event))
}
