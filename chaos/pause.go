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

// holderPause stops the process whose client holds a lock. The holder may let
// go between the look and the stop; so the look is repeated once the process
// stands still, and if the hold is gone the process goes on and the next
// holder is tried.
func (s Schedule) holderPause(ctx context.Context, id string, f scenario.Fault) error {
	length := time.Duration(f.For)
	for try := 1; ; try++ {
		// A hold that could not be spanned before the window closes would be
		// cut by the end of the run, not by the fault.
		if s.Clock.Now()+int64(length) > s.End {
			return s.missed(id, f, fmt.Sprintf("no client kept its lock long enough to be stopped while holding it (%d tries)", try-1))
		}
		h, ok := s.pick(id, try)
		if !ok {
			if err := sleep(ctx, time.Millisecond); err != nil {
				return s.missed(id, f, "the run ended before a holder was found")
			}
			continue
		}
		hit, err := s.pauseOnce(ctx, id, f, h, length, try)
		if hit || err != nil {
			return err
		}
		// A little pause, so that the tries do not become a fault of their own.
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return s.missed(id, f, "the run ended before a holder was stopped")
		}
	}
}

// pick chooses among the present holders by a hash of the seed and the event,
// so that the order of goroutines cannot change the choice.
func (s Schedule) pick(id string, try int) (Holding, bool) {
	holders := s.Clients.Holders()
	if len(holders) == 0 {
		return Holding{}, false
	}
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%d/%s/%d", s.Seed, id, try)
	return holders[sum.Sum64()%uint64(len(holders))], true
}

// pauseOnce reports hit when the pause was carried out, whatever came of it.
func (s Schedule) pauseOnce(ctx context.Context, id string, f scenario.Fault, h Holding, length time.Duration, try int) (hit bool, err error) {
	proc, err := s.Clients.Process(h.Client)
	if err != nil {
		return true, s.missed(id, f, err.Error())
	}
	event := scenario.FaultEvent{ID: id, Fault: f.Kind, Client: &h.Client, Key: &h.Key, PID: proc.PID(), Attempt: h.Attempt.String()}
	stopped := s.Clock.Now()
	if err := proc.Signal(syscall.SIGSTOP); err != nil {
		return true, s.missed(id, f, fmt.Sprintf("stop pid %d: %v", proc.PID(), err))
	}
	resume := func() error {
		if err := proc.Signal(syscall.SIGCONT); err != nil {
			return fmt.Errorf("continue pid %d: %w", proc.PID(), err)
		}
		return nil
	}
	if err := waitStopped(proc.PID(), stopPatience); err != nil {
		return true, errors.Join(s.missed(id, f, err.Error()), resume())
	}
	if !s.Clients.Holds(h) {
		return false, resume()
	}

	event.Event, event.AtNS = "injected", stopped
	event.How = fmt.Sprintf("SIGSTOP; holder found in shared memory, try %d", try)
	if _, err := s.Log.Add(event); err != nil {
		return true, errors.Join(err, resume())
	}
	_ = sleep(ctx, length) // an early end heals early; the history then shows a miss

	// Stamped before the signal: until it is sent the process cannot move, so
	// a hold that ends after this stamp ended after the pause.
	event.Event, event.AtNS, event.How = "heal_started", 0, "SIGCONT"
	_, logErr := s.Log.Add(event)
	if err := resume(); err != nil {
		return true, errors.Join(logErr, err)
	}
	event.Event = "healed"
	_, err = s.Log.Add(event)
	return true, errors.Join(logErr, err)
}
