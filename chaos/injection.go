package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// undoLimit is how long one step back may take, also after the run's own context
// has ended: the longest is to start a server again, as long as that may take.
const undoLimit = time.Minute

// injection is one try of a fault: its target, and the steps that have to be
// undone. It belongs to the goroutine of its fault, and once that has ended to
// the one that unwinds the stack.
type injection struct {
	fault *fault
	aim   aim
	event scenario.FaultEvent // says who was hit, and how
	at    int64               // stamp before it took effect
	since int64               // stamp after which it was certainly in force
	// instead of the event's How, of the event that reports the effect
	confirmed string
	effect    *scenario.WireEffect // nil: no rule has been lifted
	steps     []step
	left      []error // what could not be undone
	recorded  bool    // as injected
	quiet     bool    // others write its events
	inForce   bool    // as reported to Schedule.InForce
	remedy    string  // what the heal did
	healing   int64   // stamp before the heal
	over      int64   // stamp after it
}

// step is one thing that was done, with its way back.
type step struct {
	what string // is done to undo it; "": not worth a line in the log
	undo func(context.Context) error
}

// begin opens an injection: before anything is done, it claims its target, and
// the journal has it.
func (f *fault) begin(a aim) (*injection, error) {
	if err := f.claims.take(f.id, a.claims); err != nil {
		return nil, err
	}
	if f.Journal != nil {
		if err := f.Journal.Begin(f.id, a.what(f.Kind), a.stopped...); err != nil {
			f.claims.leave(f.id, a.claims)
			return nil, fmt.Errorf("note in the journal what is about to be done: %w", err)
		}
	}
	in := &injection{fault: f, aim: a, event: a.event}
	in.event.How = a.how
	f.undo.push(in)
	return in, nil
}

// do takes a step whose way back is known before it is taken, for one that
// failed half way has to be undone as well.
func (in *injection) do(what string, undo func(context.Context) error, take func() error) error {
	in.steps = append(in.steps, step{what, undo})
	return take()
}

// settle forgets a step that nothing can undo any more.
func (in *injection) settle(what string) {
	in.steps = slices.DeleteFunc(in.steps, func(s step) bool { return s.what == what })
}

// back undoes the last step, on a context of its own: neither the end of the run
// nor a step that took all its time may prevent the heal. The error is kept for
// close as well: something is left.
func (in *injection) back(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	last := len(in.steps) - 1
	s := in.steps[last]
	in.steps = in.steps[:last]
	err := guarded(func() error { return s.undo(ctx) })
	if err != nil {
		err = fmt.Errorf("%s: %w", s.what, err)
		in.left = append(in.left, err)
	}
	return err
}

// by puts the mechanism before how the target was found.
func (in *injection) by(mechanism string) { in.event.How = mechanism + "; " + in.aim.how }

// record writes that the fault was injected, once that is certain. A pause of
// a client is in force when it is injected, and has no second event.
func (in *injection) record() error {
	if in.quiet {
		return nil
	}
	f := in.fault
	e := in.event
	e.Event, e.AtNS = "injected", in.at
	err := f.log(e)
	in.recorded, f.hit = err == nil, true
	in.report(len(in.steps) > 0)
	if f.kind.OnClient() && f.about.Freezes {
		return err
	}
	e.Event, e.AtNS = "effective", in.since
	if in.confirmed != "" {
		e.How = in.confirmed
	}
	e.Effect = in.effect
	return errors.Join(err, f.log(e))
}

// report passes it on that the fault is in force, or not any more.
func (in *injection) report(inForce bool) {
	if in.inForce != inForce && in.fault.InForce != nil {
		in.inForce = inForce
		in.fault.InForce(in.fault.Kind, inForce)
	}
}

// close undoes all steps, the last first, even if some fail. The error names what
// is left. A second close does nothing.
func (in *injection) close(ctx context.Context) error {
	f := in.fault
	if !f.undo.remove(in) {
		return nil
	}
	defer f.claims.leave(f.id, in.aim.claims)

	heals := in.recorded && len(in.steps) > 0
	e := in.event
	in.remedy = in.wayBack()
	e.How = in.remedy
	var errs []error
	// Stamped before the first step back: until it is taken a stopped process
	// cannot move, so that a hold that ends after this stamp ended after the
	// pause.
	in.healing = f.Clock.Now()
	if heals {
		e.Event, e.AtNS = "heal_started", in.healing
		errs = append(errs, f.log(e))
	}
	for len(in.steps) > 0 {
		_ = in.back(ctx) // kept in left
	}
	in.over = f.Clock.Now()
	if len(in.left) > 0 {
		err := fmt.Errorf("heal %s: %w", f.id, errors.Join(in.left...))
		return errors.Join(append(errs, err, f.log(scenario.FaultEvent{Event: "note", Reason: err.Error()}))...)
	}
	in.report(false)
	if heals {
		e.Event, e.AtNS = "healed", in.over
		e.Effect = in.effect
		errs = append(errs, f.log(e))
	}
	if f.Journal != nil {
		if err := guarded(func() error { return f.Journal.End(f.id) }); err != nil {
			errs = append(errs, fmt.Errorf("note in the journal that %s is healed: %w", f.id, err))
		}
	}
	return errors.Join(errs...)
}

// wayBack describes what the heal will do.
func (in *injection) wayBack() string {
	var parts []string
	for _, s := range slices.Backward(in.steps) {
		if s.what != "" && !slices.Contains(parts, s.what) {
			parts = append(parts, s.what)
		}
	}
	return strings.Join(parts, ", ")
}

// guarded makes an error of a panic on the way back, for the other steps have to
// be undone too.
func guarded(undo func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return undo()
}

// stack holds the injections that have not been undone, in their order. It is
// safe for concurrent use.
type stack struct {
	mu   sync.Mutex
	list []*injection
}

func (s *stack) push(in *injection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, in)
}

// remove reports whether the injection was still there.
func (s *stack) remove(in *injection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.list, in)
	if i < 0 {
		return false
	}
	s.list = slices.Delete(s.list, i, i+1)
	return true
}

// of lists the injections of one fault, the latest first.
func (s *stack) of(f *fault) []*injection {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*injection
	for _, in := range slices.Backward(s.list) {
		if in.fault == f {
			list = append(list, in)
		}
	}
	return list
}

// unwind closes everything that is left, the latest first.
func (s *stack) unwind(ctx context.Context) error {
	var errs []error
	for {
		s.mu.Lock()
		if len(s.list) == 0 {
			s.mu.Unlock()
			return errors.Join(errs...)
		}
		last := s.list[len(s.list)-1]
		s.mu.Unlock()
		errs = append(errs, last.close(ctx))
	}
}
