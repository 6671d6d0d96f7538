package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// Holding is one client that holds a lock, as its process reports.
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
	// Waiters lists the waiting clients, the longest wait first; their Since is
	// when they sent the request.
	Waiters() []Holding
	// Idle lists those that live and neither hold nor wait.
	Idle() []uint32
	// Holds reports whether h goes on. While the client's process is
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
	// AwaitStopped returns when every thread of it stands still because of a
	// signal.
	AwaitStopped(ctx context.Context) error
	// Done is closed when the process has ended.
	Done() <-chan struct{}
}

// Gate is where a client is met at a named step of its recipe: it stands there
// until the gate is opened, for no signal from outside could hit so small a
// place. Its methods are called by one goroutine at a time.
type Gate interface {
	// Arm stops the nth client from now on that reaches the step (0 and 1: the
	// first). It returns an error if the recipe has no such step.
	Arm(step string, nth int) error
	// Caught is the client that came; its key and attempt are those of the call
	// under way.
	Caught() (Holding, bool)
	// Disarm ends the wait. False means that a client has come; Caught returns
	// it now or in a moment.
	Disarm() bool
	// Open lets the client that came go on, once its process may.
	Open()
}

// Kill is a client's process that a fault ended.
type Kill struct {
	Fault string // its id
	PID   int
}

// Available returns why a kind of fault cannot be injected on this machine, or
// nil. Whether given servers support it is another question.
func Available(kind string) error {
	k, ok := ParseKind(kind)
	if !ok {
		return fmt.Errorf("no fault %q", kind)
	}
	// A kill too stops its target first, to be sure of it. What is not certain must
	// not be reported.
	if k.OnClient() && k.About().StopsProcess && runtime.GOOS != "linux" {
		return errors.New("whether every thread of a process has stopped is known on Linux only; this is " + runtime.GOOS)
	}
	return nil
}

// Schedule is the faults of one scenario.
type Schedule struct {
	Faults []scenario.Fault
	Seed   uint64
	// Start of the measured window, and its end, as stamps of Clock.
	Start, End int64
	Clock      history.Clock
	Clients    Clients
	Gate       Gate // nil: no client can be stopped at a step
	Log        *Log
	Servers    Servers       // nil: there are none that could be hit
	Wires      Wires         // nil: none
	Journal    Journal       // nil: faults that this process cannot heal stay
	Keys       []string      // their names, by key
	TTL        time.Duration // of the clients' leases
	// Takeover: a kill may hit all clients of a process, since all of them are
	// holders.
	Takeover bool
	// InForce receives when a fault begins and ceases to be in force, from several
	// goroutines; nil: not reported. A fault without a heal, as a kill, is never in force.
	InForce func(kind string, inForce bool)
}

// engine is a schedule that is being carried out.
type engine struct {
	Schedule
	undo   stack
	claims claims
	gate   turns
}

// Run carries out the schedule, each fault at its time and beside the others,
// and returns when every fault is healed or missed, with the clients' processes
// that it ended. After the heal it looks for the first grant until the window
// closes. When ctx ends, or a fault panics, all faults in force are healed: first
// stopped clients go on, then the rest, the latest first. The error reports a
// failed heal with what is left of it, a log or a journal that could not be
// written, or a panic. A fault that missed is an event, not an error.
func (s Schedule) Run(ctx context.Context) ([]Kill, error) {
	e := &engine{Schedule: s}
	faults := e.faults()
	for _, f := range faults {
		if err := f.log(scenario.FaultEvent{Event: "armed"}); err != nil {
			return nil, err
		}
	}
	errs := make([]error, len(faults))
	var wg sync.WaitGroup
	for i, f := range faults {
		wg.Go(func() { errs[i] = f.live(ctx) })
	}
	wg.Wait()
	errs = append(errs, e.undo.unwind(ctx))

	var kills []Kill
	for _, f := range faults {
		if f.killed != 0 {
			kills = append(kills, Kill{Fault: f.id, PID: f.killed})
		}
	}
	return kills, errors.Join(errs...)
}

// fault is one fault of the schedule. It belongs to one goroutine.
type fault struct {
	scenario.Fault
	*engine
	kind   scenario.FaultKind
	about  scenario.ActionInfo
	id     string
	turn   int  // at the gate
	atGate bool // a client stands there until we open it
	killed int  // the pid of the client's process that it ended
	hit    bool // it is on record as injected
}

// faults lists the faults in the order of their times, and lets those that may
// need the gate follow one another.
func (e *engine) faults() []*fault {
	var list []*fault
	for _, p := range plan(e.Faults) {
		f := &fault{Fault: p.Fault, engine: e, id: p.ID, turn: noTurn}
		f.kind, _ = ParseKind(p.Kind) // if it is none, inject says so
		f.about = f.kind.About()
		if f.Step != "" || f.wantsHeld() {
			f.turn = e.gate.next()
		}
		list = append(list, f)
	}
	return list
}

// live is all of a fault, from the wait for its time to the first grant after
// it.
func (f *fault) live(ctx context.Context) (err error) {
	defer func() {
		if len(f.undo.of(f)) == 0 { // else who stands at the gate is let go with the heal
			f.leaveGate()
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(fmt.Errorf("fault %s: panic: %v\n%s", f.id, p, debug.Stack()), f.abandon(ctx))
		}
	}()
	if err := f.Clock.SleepUntil(ctx, f.Start+int64(f.At)); err != nil {
		return f.missed("the run ended before its time")
	}
	if f.kind.Target == scenario.TargetEach {
		return f.roll(ctx)
	}
	in, err := f.inject(ctx)
	if in == nil || err != nil {
		return err
	}
	if err := f.sustain(ctx, in); err != nil {
		// The run is over: the stack heals it, the latest first. But a stopped
		// client goes on at once, since it lifts the rules of other clients.
		if f.stopsClient() {
			return in.close(ctx)
		}
		return nil
	}
	if err := in.close(ctx); err != nil {
		return err
	}
	f.leaveGate()
	return f.firstGrant(ctx, in)
}

// stopsClient reports whether the fault has a client's process stand still.
func (f *fault) stopsClient() bool {
	return f.kind.OnClient() && f.about.StopsProcess && !f.about.Kills
}

// sustain is what a fault does while it lasts.
func (f *fault) sustain(ctx context.Context, in *injection) error {
	if len(in.steps) == 0 {
		return nil // there is nothing that could be healed
	}
	if a, ok := f.kind.Action.(sustained); ok {
		return a.sustain(ctx, f, in)
	}
	return f.sleep(ctx, time.Duration(f.For))
}

// abandon undoes what a fault that panicked has done.
func (f *fault) abandon(ctx context.Context) error {
	var errs []error
	for _, in := range f.undo.of(f) {
		errs = append(errs, in.close(ctx))
	}
	if !f.hit {
		errs = append(errs, f.missed("the fault ended in a panic"))
	}
	return errors.Join(errs...)
}

// log adds an event of this fault.
func (f *fault) log(e scenario.FaultEvent) error {
	e.ID, e.Fault, e.Step = f.id, f.Kind, f.Step
	_, err := f.Log.Add(e)
	return err
}

func (f *fault) missed(reason string) error {
	return f.log(scenario.FaultEvent{Event: "missed", Reason: reason})
}

// late reports whether what is left of the window is less than the fault lasts:
// it would be cut by the end of the run, not by its heal.
func (f *fault) late() bool { return f.Clock.Now()+int64(f.For) > f.End }

// sleep waits for d, or until ctx ends and returns its error.
func (s Schedule) sleep(ctx context.Context, d time.Duration) error {
	return s.Clock.SleepUntil(ctx, s.Clock.Now()+int64(d))
}
