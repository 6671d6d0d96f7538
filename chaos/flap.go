package chaos

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
)

// flap cuts a client off again and again, as a loose cable does: what it
// sends arrives late.
type flap struct{}

// flapEvery is how long it is cut off, and how long it is connected then.
const flapEvery = 200 * time.Millisecond

func (flap) About() scenario.ActionInfo {
	return aboutCut("flap", "it is cut off for 200ms and connected for 200ms, again and again", "was cut off again and again")
}

func (flap) rule(*fault) faultnet.Rule { return cutAll }

func (flap) hitClient(ctx context.Context, f *fault, in *injection) error {
	return f.ruleOnClient(ctx, in)
}

// sustain begins and ends with the client cut off, so that the heal is what
// connects it for good.
func (flap) sustain(ctx context.Context, f *fault, in *injection) error {
	end := f.Clock.Now() + int64(f.For)
	for f.Clock.Now()+int64(3*flapEvery) <= end {
		if err := f.sleep(ctx, flapEvery); err != nil {
			return err
		}
		if in.back(ctx) != nil {
			return nil // the heal reports it
		}
		if err := f.sleep(ctx, flapEvery); err != nil {
			return err
		}
		if _, err := f.apply(ctx, in, f.clientOf(in), nil); err != nil {
			return ctx.Err() // else the fault is over before its time, and healed
		}
	}
	return f.Clock.SleepUntil(ctx, end)
}

// Expect expects what holds if the client is cut off all the time, and leaves
// open whether it learns of a loss in time.
func (flap) Expect(s scenario.Situation) scenario.Expect {
	e := cutOffClient(s, "connection")
	if e.Verdict == scenario.Unsafe {
		e.Verdict = ""
	}
	return e
}

func (flap) cause(s Suspicion) string { return cutOff(s) }
