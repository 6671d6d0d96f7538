package run

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/netdrop"
	"github.com/lockbench/lockbench/internal/scenario"
)

// kernelCarries reports whether the kernel is to carry the faults between the
// scenario's clients and servers, where it can: all of them are cuts.
func kernelCarries(sc scenario.Scenario) bool {
	wire := func(k scenario.FaultKind) bool { return k.About().Wire }
	notCut := func(k scenario.FaultKind) bool { return wire(k) && !k.About().DropsPackets }
	return sc.Wire != scenario.WireProxy && hasFault(sc, wire) && !hasFault(sc, notCut)
}

// hurtsServers reports whether a fault of the scenario hits the servers.
func hurtsServers(sc scenario.Scenario) bool {
	return hasFault(sc, func(k scenario.FaultKind) bool { return !k.OnClient() })
}

func hasFault(sc scenario.Scenario, is func(scenario.FaultKind) bool) bool {
	return slices.ContainsFunc(sc.Faults, func(f scenario.Fault) bool {
		kind, ok := chaos.ParseKind(f.Kind)
		return ok && is(kind)
	})
}

// EnterKernel puts the program into a network of its own if a scenario has
// faults that the kernel is to carry, or may: it executes the program anew then,
// and does not return on the way in. See netdrop.Enter for when to call it. If the
// network is not available, it does nothing: scenarios that can run without it do,
// and the others are reported as missing.
func EnterKernel(scenarios []scenario.Scenario) error {
	// Containers and external servers are out of reach from there.
	elsewhere := func(sc scenario.Scenario) bool { return sc.Environment != scenario.EnvProcess }
	if slices.ContainsFunc(scenarios, elsewhere) || !slices.ContainsFunc(scenarios, kernelCarries) || !netdrop.Inside() && netdrop.Available() != nil {
		return nil
	}
	return netdrop.Enter()
}

// unable returns why a scenario's faults cannot be injected here, or nil.
func (r *runner) unable(sc scenario.Scenario, s servers) error {
	for _, f := range sc.Faults {
		if err := r.unableTo(sc, f, s); err != nil {
			return fmt.Errorf("fault %s cannot be injected: %w", f.Kind, err)
		}
	}
	return nil
}

func (r *runner) unableTo(sc scenario.Scenario, f scenario.Fault, s servers) error {
	if err := chaos.Available(f.Kind); err != nil {
		return err
	}
	kind, ok := chaos.ParseKind(f.Kind)
	switch {
	case !ok:
		return errors.New("there is no such fault")
	case sc.Wire == scenario.WireKernel && r.dropper == nil && kernelCarries(sc):
		if err := netdrop.Available(); err != nil {
			return err
		}
		return errors.New("the run has no network of its own, in which the kernel could drop packets: start it with lockbench run")
	case s.cluster != nil && kind.About().Needs != "":
		return s.cluster.Can(kind.About().Needs)
	case s.isExternal() && !kind.OnClient():
		return externalServers{s.external}.Can(kind.About().Needs)
	case s.cluster != nil || s.isExternal():
		return nil
	case !kind.OnClient():
		return errors.New("the reference lock is served by lockbench itself, there is no server to be hurt")
	case kind.KillsClient() && kind.About().Wire:
		return errors.New("the reference lock is reached by a socket of the machine, which ends with its process whatever was cut")
	}
	return nil
}
