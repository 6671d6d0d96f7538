package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/scenario"
)

// Holding is one client that holds a lock, as its process tells.
type Holding struct {
	Client  uint32
	Key     uint32
	Attempt history.Attempt
	Since   int64 // stamp of the grant
}

// Clients is what the schedule needs to know of a scenario's clients. Its
// methods are safe for concurrent use.
type Clients interface {
	// Holders lists the clients that hold a lock at this moment, by client.
	Holders() []Holding
	// Waiters lists those that wait for one, who has waited longest first; their
	// Since is when they asked.
	Waiters() []Holding
	// Idle lists those that live and neither hold nor wait.
	Idle() []uint32
	// Holds reports whether h still stands. While the client's process is
	// stopped, true means that the release has not been sent.
	Holds(h Holding) bool
	// Process is the process that hosts a client, and all clients that it
	// hosts.
	Process(client uint32) (Process, []uint32, error)
}

// Process is an OS process that the run started.
type Process interface {
	PID() int
	// Signal sends sig after checking that the pid is still the process that
	// was started.
	Signal(sig os.Signal) error
	// Done is closed when the process has ended.
	Done() <-chan struct{}
}

// Gate is where a client is met at a named step of its recipe: it stands there
// until the gate is opened, for no signal from outside could hit so small a
// place. Its methods are called by one goroutine at a time.
type Gate interface {
	// Arm makes the nth client from now on that comes to the step (0 and 1: the
	// first) stand there. The error tells that the recipe has no such step.
	Arm(step string, nth int) error
	// Caught is the client that came; its key and attempt are those of the call
	// under way.
	Caught() (Holding, bool)
	// Disarm waits no longer; false means that a client has come, whom Caught
	// tells now or in a moment.
	Disarm() bool
	// Open lets the client that came go on, once its process may.
	Open()
}

// Kill is a process that a fault ended.
type Kill struct {
	Fault string // its id
	PID   int
}

// Available says why a kind of fault cannot be injected on this machine, or
// nil.
func Available(kind string) error {
	switch kind {
	case scenario.HolderPause, scenario.HolderKill, scenario.StepPause, scenario.StepKill:
		return pauseAvailable() // a kill too makes sure of its target first
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
	Gate       Gate
	Log        *Log
	Servers    Servers  // nil: there are none that could be hit
	Wires      Wires    // nil: none
	Journal    Journal  // nil: nobody is to heal what we cannot
	Keys       []string // their names, by key
	TTL        time.Duration
	// Takeover says that a kill may hit all clients of a process, since those
	// beside a holder are holders too.
	Takeover bool
}

// Run carries out the schedule and returns when every fault is healed or
// missed, with the processes that it ended. When ctx ends, faults in force are
// healed at once. The error tells of a heal that failed or a log that could not
// be written; a fault that missed is no error but an event.
func (s Schedule) Run(ctx context.Context) ([]Kill, error) {
	faults := slices.Clone(s.Faults)
	slices.SortStableFunc(faults, func(a, b scenario.Fault) int { return int(a.At - b.At) })
	var kills []Kill
	var errs []error
	for i, planned := range faults {
		f := fault{Fault: planned, id: ID(i, planned), schedule: s}
		if err := f.log(scenario.FaultEvent{Event: "armed"}); err != nil {
			return kills, errors.Join(append(errs, err)...)
		}
		if err := s.Clock.SleepUntil(ctx, s.Start+int64(f.At)); err != nil {
			errs = append(errs, f.missed("the run ended before its time"))
			continue
		}
		pid, err := f.run(ctx)
		if pid != 0 {
			kills = append(kills, Kill{Fault: f.id, PID: pid})
		}
		errs = append(errs, err)
	}
	return kills, errors.Join(errs...)
}

// fault is one fault under way.
type fault struct {
	scenario.Fault
	id       string
	schedule Schedule
}

// run carries the fault out. It answers the process that it ended, or 0.
func (f fault) run(ctx context.Context) (killed int, err error) {
	switch f.Kind {
	case scenario.HolderPause:
		return 0, f.holderPause(ctx)
	case scenario.HolderKill:
		return f.holderKill(ctx)
	case scenario.StepPause:
		return 0, f.stepPause(ctx)
	case scenario.StepKill:
		return f.stepKill(ctx)
	}
	return 0, fmt.Errorf("fault %q: no such fault", f.Kind)
}

// log adds an event of this fault.
func (f fault) log(e scenario.FaultEvent) error {
	e.ID, e.Fault, e.Step = f.id, f.Kind, f.Step
	_, err := f.schedule.Log.Add(e)
	return err
}

func (f fault) missed(reason string) error {
	return f.log(scenario.FaultEvent{Event: "missed", Reason: reason})
}

// sleep waits for d, or until ctx ends and returns its error.
func (s Schedule) sleep(ctx context.Context, d time.Duration) error {
	return s.Clock.SleepUntil(ctx, s.Clock.Now()+int64(d))
}
