package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
)

const (
	// stopPatience limits how long a stopped process may take to stand still.
	stopPatience = 2 * time.Second
	// endPatience is how long a killed process may take to end. It does nothing
	// any more, but a busy machine takes its time to bury it.
	endPatience = 10 * time.Second
	// wireLimit is how long a rule may take to be in force everywhere.
	wireLimit = 10 * time.Second

	// A starved process runs for one of twenty milliseconds.
	starveStands = 19 * time.Millisecond
	starveRuns   = time.Millisecond

	goOn   = "SIGCONT"
	lift   = "the rule of the wire is lifted"
	unskew = "the client's clock is set right"
)

// actOnClient hits a client.
func (f *fault) actOnClient(ctx context.Context, in *injection) error {
	switch f.kind.Action {
	case scenario.ActPause:
		if in.keepsGate() { // undone last
			in.steps = append(in.steps, step{undo: func(context.Context) error { f.openGate(); return nil }})
		}
		return f.stop(ctx, in)
	case scenario.ActStarve:
		err := f.stop(ctx, in)
		in.by("SIGSTOP for 19 of 20 ms")
		return err
	case scenario.ActKill:
		if err := f.stop(ctx, in); err != nil {
			return err
		}
		return f.end(in)
	case scenario.ActCutKill:
		return f.cutKill(ctx, in)
	case scenario.ActClock:
		return f.still(in, func() error { return f.skew(ctx, in) })
	case scenario.ActReplyLost:
		return f.loseReply(ctx, in)
	case scenario.ActReset:
		return f.still(in, func() error { return f.reset(ctx, in, f.clientOf(in), nil) })
	}
	return f.still(in, func() error { return in.saying(f.apply(ctx, in, f.clientOf(in), nil)) })
}

func (f *fault) clientOf(in *injection) []uint32 { return []uint32{in.aim.prey.Client} }

// still hits a client that is at work: it must have been what it was chosen for
// just before and just after.
func (f *fault) still(in *injection, hit func() error) error {
	if !in.aim.prey.stands() {
		return errEscaped
	}
	in.at = f.Clock.Now()
	if err := hit(); err != nil {
		return err
	}
	in.since = f.Clock.Now()
	if !in.aim.prey.stands() {
		return errEscaped
	}
	return nil
}

// stop makes the process of a client stand still, and makes sure that it does
// so while it is what it was chosen for.
func (f *fault) stop(ctx context.Context, in *injection) error {
	p := in.aim.proc
	in.by("SIGSTOP")
	in.at = f.Clock.Now()
	resume := func(context.Context) error { return f.signal(p, syscall.SIGCONT) }
	if err := in.do(goOn, resume, func() error { return p.Signal(syscall.SIGSTOP) }); err != nil {
		return fmt.Errorf("stop pid %d: %w", p.PID(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	if err := p.AwaitStopped(ctx); err != nil {
		return err
	}
	if !in.aim.prey.stands() {
		return errEscaped
	}
	return nil
}

// signal sends a signal to a process; one that has ended needs none.
func (f *fault) signal(p Process, sig syscall.Signal) error {
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %v to pid %d: %w", sig, p.PID(), err)
	}
	return nil
}

// end kills a process that stands still, so that nobody could let go between
// the look and the kill, and waits until it has ended.
func (f *fault) end(in *injection) error {
	p := in.aim.proc
	in.by("SIGKILL")
	// Stamped before the signal, and after the process stood still: it was dead
	// no sooner, and did nothing any more.
	in.at = f.Clock.Now()
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill pid %d: %w", p.PID(), err)
	}
	f.killed = p.PID()
	if !ended(p) {
		return fmt.Errorf("pid %d did not end within %v of SIGKILL", p.PID(), endPatience)
	}
	in.settle(goOn)
	in.confirmed = "the process has ended"
	return nil
}

// cutKill ends a client that nobody hears from any more, so that no server sees
// its end.
func (f *fault) cutKill(ctx context.Context, in *injection) error {
	if err := f.stop(ctx, in); err != nil {
		return err
	}
	wire, err := f.apply(ctx, in, f.clientOf(in), nil)
	if err != nil {
		return err
	}
	if err := f.end(in); err != nil {
		return err
	}
	in.by("SIGKILL behind a cut: " + wire)
	return nil
}

// starve lets a stopped process run for a moment, again and again, until the
// fault's time is over.
func (f *fault) starve(ctx context.Context, in *injection) error {
	p := in.aim.proc
	for until := f.Clock.Now() + int64(f.For); f.Clock.Now() < until; {
		if err := f.sleep(ctx, starveStands); err != nil {
			return err
		}
		if p.Signal(syscall.SIGCONT) != nil {
			return nil // it has ended: there is nobody to starve
		}
		if err := f.sleep(ctx, starveRuns); err != nil {
			return err
		}
		if p.Signal(syscall.SIGSTOP) != nil {
			return nil
		}
	}
	return nil
}

// rule is what is wrong with the wire while the fault lasts.
func (f *fault) rule() faultnet.Rule {
	var r faultnet.Rule
	switch f.kind.Action {
	case scenario.ActCut, scenario.ActCutKill, scenario.ActCutPeers, scenario.ActCutClients:
		r.CutIn, r.CutOut = true, true
	case scenario.ActCutIn:
		r.CutIn = true
	case scenario.ActCutOut:
		r.CutOut = true
	case scenario.ActDelay:
		r.Delay = f.By.D()
		if r.Jitter = f.Jitter.D(); r.Jitter > 0 {
			r.Seed = f.hash(0)
		}
	case scenario.ActThrottle:
		r.Rate = f.Rate
	case scenario.ActStall:
		r.Stall = true
	case scenario.ActReset:
		r.Reset = true
	case scenario.ActRefuse:
		r.Refuse = true
	case scenario.ActReplyLost:
		r.LoseReply = true
	}
	return r
}

// skew sets a client's clock wrong. One that has ended has no clock that need be
// set right.
func (f *fault) skew(ctx context.Context, in *injection) error {
	c := in.aim.prey.Client
	in.by("skewed clock")
	ctx, cancel := context.WithTimeout(ctx, wireLimit)
	defer cancel()
	right := func(ctx context.Context) error {
		err := f.Wires.Skew(ctx, c, 0)
		if err != nil && ended(in.aim.proc) {
			return nil
		}
		return err
	}
	return in.do(unskew, right, func() error { return f.Wires.Skew(ctx, c, f.By.D()) })
}

// apply puts the fault's rule between clients and addresses.
func (f *fault) apply(ctx context.Context, in *injection, clients []uint32, addresses []string) (how string, err error) {
	ctx, cancel := context.WithTimeout(ctx, wireLimit)
	defer cancel()
	away := func(ctx context.Context) error {
		effect, err := f.Wires.Lift(ctx, f.id)
		in.adds(effect)
		return err
	}
	err = in.do(lift, away, func() error {
		how, err = f.Wires.Apply(ctx, f.id, clients, addresses, f.rule())
		return err
	})
	if err != nil {
		return "", fmt.Errorf("put %s on the wire: %w", f.kind.Action, err)
	}
	return how, nil
}

// adds puts together what several rules did.
func (in *injection) adds(e Effect) {
	if in.effect == nil {
		in.effect = &scenario.WireEffect{}
	}
	in.effect.HeldBytes += e.HeldBytes
	in.effect.LostBytes += e.LostBytes
	in.effect.LateBytes += e.LateBytes
	in.effect.Dials += e.Dials
	in.effect.Broken += e.Broken
	in.effect.Packets += e.Packets
}

// reset breaks the present connections, of which there must be one.
func (f *fault) reset(ctx context.Context, in *injection, clients []uint32, addresses []string) error {
	if err := in.saying(f.apply(ctx, in, clients, addresses)); err != nil {
		return err
	}
	if err := in.back(ctx); err != nil {
		return err
	}
	if in.effect.Broken == 0 {
		return errors.New("there was no connection to break")
	}
	in.confirmed = fmt.Sprintf("connections broken: %d", in.effect.Broken)
	return nil
}
