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
	// endPatience is how long a killed process may take to end: it does nothing
	// any more, but a busy machine is slow to remove it.
	endPatience = 10 * time.Second
	// wireLimit is how long a rule may take to be in force everywhere.
	wireLimit = 10 * time.Second

	goOn = "SIGCONT"
	lift = "the rule of the wire is lifted"
)

// ruleOnClient puts the fault's rule on a client's connections.
func (f *fault) ruleOnClient(ctx context.Context, in *injection) error {
	return f.still(in, func() error { return in.saying(f.apply(ctx, in, f.clientOf(in), nil)) })
}

func (f *fault) clientOf(in *injection) []uint32 { return []uint32{in.aim.target.Client} }

// still hits a client that is at work: it must have been what it was chosen for
// just before and just after.
func (f *fault) still(in *injection, hit func() error) error {
	if !in.aim.target.stillValid() {
		return errEscaped
	}
	in.at = f.Clock.Now()
	if err := hit(); err != nil {
		return err
	}
	in.since = f.Clock.Now()
	if !in.aim.target.stillValid() {
		return errEscaped
	}
	return nil
}

// stop makes the process of a client stand still, and makes sure that it does
// so while it is what it was chosen for. One whose process has ended since, as
// another fault's victim, has escaped.
func (f *fault) stop(ctx context.Context, in *injection) error {
	p := in.aim.proc
	in.by("SIGSTOP")
	in.at = f.Clock.Now()
	resume := func(context.Context) error { return f.signal(p, syscall.SIGCONT) }
	err := in.do(goOn, resume, func() error { return p.Signal(syscall.SIGSTOP) })
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, stopPatience)
		defer cancel()
		err = p.AwaitStopped(ctx)
	}
	switch {
	case errors.Is(err, os.ErrProcessDone):
		return errEscaped
	case err != nil:
		return fmt.Errorf("stop pid %d: %w", p.PID(), err)
	}
	if !in.aim.target.stillValid() {
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

// end kills a process that stands still, so that its client could not release
// between the look and the kill, and waits until it has ended.
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
		return "", fmt.Errorf("put %s on the wire: %w", f.about.Name, err)
	}
	return how, nil
}

// adds puts together what several rules did.
func (in *injection) adds(e faultnet.Effect) {
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

// rule is the action's rule on connections.
func (f *fault) rule() faultnet.Rule { return f.kind.Action.(ruled).rule(f) }

// ended waits for the end of a process that was killed.
func ended(p Process) bool {
	timer := time.NewTimer(endPatience)
	defer timer.Stop()
	select {
	case <-p.Done():
		return true
	case <-timer.C:
		return false
	}
}
