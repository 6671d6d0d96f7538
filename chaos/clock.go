package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

var clockOffset = scenario.Measure{
	Name:    "clock offset",
	Summary: "how far the clock jumps, backwards if negative (default a TTL and 1s)",
	Default: scenario.Duration(time.Second), AddTTL: true, Signed: true,
}

// clientClock sets a client's wall clock wrong.
type clientClock struct{}

func (clientClock) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "clock", Group: scenario.GroupClient, Targets: scenario.ClientTargets(),
		Summary: "its wall clock jumps, by a TTL and 1s ahead by default, and is set right again; only what reads it notices",
		Means:   "the clock that the client is given", Did: "had its clock set",
		By: clockOffset, Exclusive: true, KeepsServing: true, Misleads: true,
	}
}

func (clientClock) hitClient(ctx context.Context, f *fault, in *injection) error {
	return f.still(in, func() error { return f.skew(ctx, in) })
}

// skew sets a client's clock wrong. One that has ended has no clock that need be
// set right.
func (f *fault) skew(ctx context.Context, in *injection) error {
	c := in.aim.target.Client
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
	return in.do("the client's clock is set right", right, func() error { return f.Wires.Skew(ctx, c, f.By.D()) })
}

// Expect expects what is expected without a fault: recipes take their times from
// a clock that does not jump, but for those that write the time of day into the
// lock.
func (clientClock) Expect(s scenario.Situation) scenario.Expect {
	if atStep(s) {
		return anything()
	}
	return s.Calm
}

func (clientClock) cause(Suspicion) string { return "the client's clock jumped" }

// serverClock sets servers' wall clocks wrong.
type serverClock struct{}

func (serverClock) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "clock", Group: scenario.GroupServer, Targets: scenario.ServerTargets(),
		Summary: "its wall clock jumps, by a TTL and 1s ahead by default, and is set right again",
		Means:   "a library preloaded into the server", Did: "had its clock set",
		By: clockOffset, Needs: scenario.AbilityClock, Prepared: true,
		Exclusive: true, KeepsLeader: true, KeepsServing: true,
	}
}

func (serverClock) claims() []claim { return []claim{{"the clock", true}} }

func (serverClock) hitServers(ctx context.Context, f *fault, in *injection) error {
	right := func(ctx context.Context, n int) error { _, err := f.Servers.SetClock(ctx, n, 0); return err }
	return f.onEach(ctx, in, "the server's clock is set right", right, func(ctx context.Context, n int) error {
		return in.saying(f.Servers.SetClock(ctx, n, f.By.D()))
	})
}

func (serverClock) Expect(s scenario.Situation) scenario.Expect {
	return serverFault{keeps: s.Servers != nil && s.Servers.MonotonicClock, goesOn: true}.expect(s)
}

func (serverClock) cause(s Suspicion) string { return fmt.Sprintf("the clock of %s jumped", s.Where) }
