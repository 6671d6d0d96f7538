package chaos

import (
	"context"
	"syscall"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// starve lets a client's process run for one of twenty milliseconds.
type starve struct{}

const (
	starveStopped = 19 * time.Millisecond
	starveRuns    = time.Millisecond
)

func (starve) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "starve", Group: scenario.GroupClient, Targets: scenario.ClientTargets(),
		Summary: "it gets a twentieth of a processor",
		Means:   "signals", Did: "was starved of processor time",
		StopsProcess: true,
	}
}

func (starve) hitClient(ctx context.Context, f *fault, in *injection) error {
	err := f.stop(ctx, in)
	in.by("SIGSTOP for 19 of 20 ms")
	return err
}

// sustain lets the stopped process run for a moment, again and again.
func (starve) sustain(ctx context.Context, f *fault, in *injection) error {
	p := in.aim.proc
	for until := f.Clock.Now() + int64(f.For); f.Clock.Now() < until; {
		if err := f.sleep(ctx, starveStopped); err != nil {
			return err
		}
		if p.Signal(syscall.SIGCONT) != nil {
			return nil // it has ended
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

func (starve) Expect(s scenario.Situation) scenario.Expect { return slowClient(s) }

func (starve) missed(e Evidence) string { return ownProcess(e) }

func (starve) cause(s Suspicion) string { return outlived(s, "starved") }
