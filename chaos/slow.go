package chaos

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
)

// clientsAndServers are the targets of faults on connections at either end.
func clientsAndServers() []string {
	return append(scenario.ClientTargets(), scenario.ServerTargets()...)
}

// slowServers is what is expected when servers are slow to answer.
func slowServers(s scenario.Situation) scenario.Expect {
	return serverFault{keeps: true, goesOn: true}.expect(s)
}

// delay lets everything come late.
type delay struct{}

func (delay) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "delay", Group: scenario.GroupWire, Targets: clientsAndServers(),
		Summary: "all bytes come late, by 50ms in each direction by default",
		Means:   "proxy",
		By:      scenario.Measure{Name: "delay", Summary: "how late each direction is (default 50ms)", Default: scenario.Duration(50 * time.Millisecond)},
		Wire:    true, HasJitter: true, KeepsLeader: true,
	}
}

func (delay) rule(f *fault) faultnet.Rule {
	r := faultnet.Rule{Delay: f.By.D()}
	if r.Jitter = f.Jitter.D(); r.Jitter > 0 {
		r.Seed = f.hash(0)
	}
	return r
}

func (delay) hitClient(ctx context.Context, f *fault, in *injection) error {
	return f.ruleOnClient(ctx, in)
}

func (delay) hitServers(ctx context.Context, f *fault, in *injection) error {
	return f.surround(ctx, in, false)
}

func (delay) Expect(s scenario.Situation) scenario.Expect {
	if s.Kind.OnClient() {
		return slowClient(s)
	}
	return slowServers(s)
}

func (delay) noticed(e scenario.WireEffect) bool { return e.LateBytes > 0 }

func (delay) cause(s Suspicion) string {
	if s.Kind.OnClient() {
		return cutOff(s)
	}
	return unreachable(s)
}

// throttle lets so many bytes a second pass and no more.
type throttle struct{}

func (throttle) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "throttle", Group: scenario.GroupWire, Targets: clientsAndServers(),
		Summary: "no more than 10 kB a second pass, by default",
		Means:   "proxy", Rate: 10_000,
		Wire: true, KeepsLeader: true,
	}
}

func (throttle) rule(f *fault) faultnet.Rule { return faultnet.Rule{Rate: f.Rate} }

func (throttle) hitClient(ctx context.Context, f *fault, in *injection) error {
	return f.ruleOnClient(ctx, in)
}

func (throttle) hitServers(ctx context.Context, f *fault, in *injection) error {
	return f.surround(ctx, in, false)
}

func (throttle) Expect(s scenario.Situation) scenario.Expect { return delay{}.Expect(s) }

func (throttle) noticed(e scenario.WireEffect) bool { return delay{}.noticed(e) }

func (throttle) cause(s Suspicion) string { return delay{}.cause(s) }

// stall has a client read nothing, so that what it writes waits.
type stall struct{}

func (stall) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "stall", Group: scenario.GroupWire, Targets: scenario.ClientTargets(),
		Summary: "it reads nothing, and what it writes waits",
		Means:   "proxy", Wire: true,
	}
}

func (stall) rule(*fault) faultnet.Rule { return faultnet.Rule{Stall: true} }

func (stall) hitClient(ctx context.Context, f *fault, in *injection) error {
	return f.ruleOnClient(ctx, in)
}

func (stall) Expect(s scenario.Situation) scenario.Expect {
	return cutOffClient(s, "connection", "session")
}

func (stall) cause(s Suspicion) string { return cutOff(s) }
