package chaos

import (
	"context"
	"fmt"
	"time"
)

// stepPause stops the next client that comes to a named step for a while.
func (f fault) stepPause(ctx context.Context) error {
	defer f.schedule.Gate.Open()
	t, err := f.catch(ctx, time.Duration(f.For))
	if t == nil || err != nil {
		return err
	}
	t.event.How = "SIGSTOP; " + t.how
	return f.pause(ctx, t)
}

// stepKill ends the next client that comes to a named step.
func (f fault) stepKill(ctx context.Context) (killed int, err error) {
	defer f.schedule.Gate.Open()
	t, err := f.catch(ctx, 0)
	if t == nil || err != nil {
		return 0, err
	}
	return f.kill(t)
}

// catch waits at the gate for the first client that comes to the fault's step,
// and stops its process. Without one the miss is on record.
func (f fault) catch(ctx context.Context, rest time.Duration) (*target, error) {
	s := f.schedule
	if err := s.Gate.Arm(f.Step, f.Nth); err != nil {
		return nil, f.missed(err.Error())
	}
	last := time.Duration(0) // for which a client that has come at the last moment was waited for
	for {
		if h, ok := s.Gate.Caught(); ok {
			return f.stopAt(h)
		}
		reason := ""
		if s.Clock.Now()+int64(rest) > s.End {
			reason = fmt.Sprintf("no client came to the step %q in time", f.Step)
		} else if err := s.sleep(ctx, time.Millisecond); err != nil {
			reason = fmt.Sprintf("the run ended before a client came to the step %q", f.Step)
		}
		switch {
		case reason == "":
		case s.Gate.Disarm():
			return nil, f.missed(reason)
		case last > stopPatience:
			return nil, f.missed(fmt.Sprintf("a client came to the step %q and vanished", f.Step))
		default:
			time.Sleep(time.Millisecond) // also when ctx is over
			last += time.Millisecond
		}
	}
}

// stopAt stops the process of a client that stands at the gate. Without a
// target the miss is on record.
func (f fault) stopAt(h Holding) (*target, error) {
	t, err := f.aim(h)
	if t == nil || err != nil {
		return nil, err
	}
	t.how = "the client stood at the step"
	if ok, err := f.stop(t); !ok || err != nil {
		return nil, err
	}
	return t, nil
}
