package chaos

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
)

// reset breaks the present connections, once.
type reset struct{}

func (reset) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "reset", Group: scenario.GroupWire, Targets: clientsAndServers(),
		Summary: "present connections break, once; of a server, those of all its clients",
		Means:   "proxy", Instant: true, Wire: true,
	}
}

func (reset) rule(*fault) faultnet.Rule { return faultnet.Rule{Reset: true} }

func (reset) hitClient(ctx context.Context, f *fault, in *injection) error {
	return f.still(in, func() error { return f.breakConnections(ctx, in, f.clientOf(in), nil) })
}

func (reset) hitServers(ctx context.Context, f *fault, in *injection) error {
	return f.breakConnections(ctx, in, nil, in.addresses())
}

// breakConnections breaks them, of which there must be one.
func (f *fault) breakConnections(ctx context.Context, in *injection, clients []uint32, addresses []string) error {
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

func (reset) Expect(s scenario.Situation) scenario.Expect {
	switch {
	case !s.Kind.OnClient():
		return serverFault{keeps: true, endsConnections: true, goesOn: true}.expect(s)
	case atStep(s):
		return anything()
	case s.Kind.OnHolder():
		return brokenHolder(s)
	}
	return lostGrant(s)
}

// brokenHolder is what is expected when a holder's connection breaks.
func brokenHolder(s scenario.Situation) scenario.Expect {
	if s.Recipe.Bound == "connection" {
		return anything() // the lock ends with the connection, whatever its holder does
	}
	e := s.Calm
	e.Liveness = passesOn(s.Recipe, e.Liveness)
	return e
}

func (reset) noticed(e scenario.WireEffect) bool { return e.Broken > 0 }

func (reset) cause(s Suspicion) string { return broken(s) }

func (reset) absence(scenario.FaultKind, scenario.ServerFacts) (Absence, bool) {
	return Absence{}, true
}

// refuse breaks the present connections, and refuses new ones.
type refuse struct{}

func (refuse) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "refuse", Group: scenario.GroupWire, Targets: clientsAndServers(),
		Summary: "present connections break, and new ones are refused",
		Means:   "proxy", Wire: true, KeepsLeader: true,
	}
}

func (refuse) rule(*fault) faultnet.Rule { return faultnet.Rule{Refuse: true} }

func (refuse) hitClient(ctx context.Context, f *fault, in *injection) error {
	return f.ruleOnClient(ctx, in)
}

func (refuse) hitServers(ctx context.Context, f *fault, in *injection) error {
	return in.saying(f.apply(ctx, in, nil, in.addresses()))
}

func (refuse) Expect(s scenario.Situation) scenario.Expect {
	switch {
	case !s.Kind.OnClient():
		return serverFault{keeps: true, endsConnections: true, goesOn: othersGoOn(s)}.expect(s)
	case s.Kind.OnHolder() && s.Recipe.Bound == "connection":
		return anything()
	}
	return cutOffClient(s, "connection")
}

func (refuse) cause(s Suspicion) string { return broken(s) }

func (refuse) absence(scenario.FaultKind, scenario.ServerFacts) (Absence, bool) {
	return Absence{}, true
}

// closeClients asks servers to close their clients' connections.
type closeClients struct{}

func (closeClients) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "close", Group: scenario.GroupServer, Targets: scenario.ServerTargets(),
		Summary: "asked to close its clients' connections",
		Means:   "the server's own commands", Instant: true, Needs: scenario.AbilityClose,
	}
}

// hitServers has connections closed, of which there must be one.
func (closeClients) hitServers(ctx context.Context, f *fault, in *injection) error {
	in.by("asked to close")
	sum := 0
	for _, n := range in.aim.nodes {
		closed, err := f.Servers.CloseClients(ctx, n)
		if err != nil {
			return fmt.Errorf("close clients' connections: %w", err)
		}
		sum += closed
	}
	if sum == 0 {
		return errors.New("there was no connection to close")
	}
	in.confirmed = fmt.Sprintf("connections closed: %d", sum)
	return nil
}

func (closeClients) Expect(s scenario.Situation) scenario.Expect {
	return serverFault{keeps: true, endsConnections: true, goesOn: true}.expect(s)
}

func (closeClients) cause(s Suspicion) string { return broken(s) }

func (closeClients) absence(scenario.FaultKind, scenario.ServerFacts) (Absence, bool) {
	return Absence{}, true
}
