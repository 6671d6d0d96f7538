package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/scenario"
)

// Holding is one client that holds a lock, as its process tells.
type Holding struct {
	Client  uint32
	Key     uint32
	Attempt history.Attempt
}

// Clients is what the schedule needs to know of a scenario's clients. Its
// methods are safe for concurrent use.
type Clients interface {
	// Holders lists the clients that hold a lock at this moment, by client.
	Holders() []Holding
	// Holds reports whether h still stands. While the client's process is
	// stopped, true means that the release has not been sent.
	Holds(h Holding) bool
	// Process is the process that hosts a client. A fault that may hit only
	// one client needs a process with no other in it.
	Process(client uint32) (Process, error)
}

// Process is an OS process that the run started.
type Process interface {
	PID() int
	// Signal sends sig after checking that the pid is still the process that
	// was started.
	Signal(sig os.Signal) error
}

// Available says why a kind of fault cannot be injected on this machine, or
// nil.
func Available(kind string) error {
	switch kind {
	case scenario.HolderPause:
		return pauseAvailable()
	default:
		return fmt.Errorf("no fault %q", kind)
	}
}

// Schedule is the faults of one scenario.
type Schedule struct {
	Faults []scenario.Fault
	Seed   uint64
	// Start of the measured window, and its end, as stamps of Clock.
	Start, End int64
	Clock      history.Clock
	Clients    Clients
	Log        *Log
}

// Run carries out the schedule and returns when every fault is healed or
// missed. When ctx ends, faults in force are healed at once. The error tells
// of a heal that failed or a log that could not be written; a fault that
// missed is no error but an event.
func (s Schedule) Run(ctx context.Context) error {
	faults := slices.Clone(s.Faults)
	slices.SortStableFunc(faults, func(a, b scenario.Fault) int { return int(a.At - b.At) })
	var errs []error
	for i, f := range faults {
		id := ID(i, f)
		if _, err := s.Log.Add(scenario.FaultEvent{ID: id, Fault: f.Kind, Event: "armed"}); err != nil {
			return errors.Join(append(errs, err)...)
		}
		if err := s.sleepUntil(ctx, s.Start+int64(f.At)); err != nil {
			errs = append(errs, s.missed(id, f, "the run ended before its time"))
			continue
		}
		switch f.Kind {
		case scenario.HolderPause:
			errs = append(errs, s.holderPause(ctx, id, f))
		default:
			return fmt.Errorf("fault %q: no such fault", f.Kind)
		}
	}
	return errors.Join(errs...)
}

// ID is the stable name of the i-th fault of a schedule: the same seed gives
// the same fault the same choices whatever else happens.
func ID(i int, f scenario.Fault) string { return f.Kind + "-" + strconv.Itoa(i+1) }

func (s Schedule) missed(id string, f scenario.Fault, reason string) error {
	_, err := s.Log.Add(scenario.FaultEvent{ID: id, Fault: f.Kind, Event: "missed", Reason: reason})
	return err
}

func (s Schedule) sleepUntil(ctx context.Context, stamp int64) error {
	return sleep(ctx, time.Duration(stamp-s.Clock.Now()))
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
