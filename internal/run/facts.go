package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/netdrop"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/workloads"
)

// Facts is what a suite's expansion has to know of a recipe.
func Facts(r impls.Recipe) scenario.RecipeFacts {
	info := r.Info()
	f := scenario.RecipeFacts{
		ID: info.ID, Backend: info.Backend, Bound: string(info.Bound), Fencing: info.Fencing, LockDelay: info.LockDelay,
		Broken: info.Broken, Topologies: info.Topologies, GrantsPerServer: info.GrantsPerServer, Takeover: info.Takeover,
		Nodes: func(topology string) int { return cluster.Size(info.Backend, topology) },
		CheckTTL: func(ttl time.Duration, settings map[string]string) error {
			return r.CheckTTL(ttl, cluster.LimitsFor(info.Backend, settings))
		},
		CanFault: func(topology string, k scenario.FaultKind, settings map[string]string) error {
			return canFault(info.Backend, topology, k, settings)
		},
		Guarantees: func(topology string, settings map[string]string) scenario.ServerFacts {
			return cluster.Guarantees(info.Backend, topology, settings)
		},
	}
	// A recipe whose inner release frees the lock does not promise the property,
	// but its holder can lock again; its name shows that.
	f.Reenters = info.Promises(impls.Reenterable) || strings.HasSuffix(info.ID, "-reentrant")
	for _, p := range info.Properties {
		f.Properties = append(f.Properties, string(p))
	}
	for _, s := range workloads.Steps(info) {
		f.Steps = append(f.Steps, string(s))
	}
	return f
}

// errNoServer: the controls have no server that could be hurt.
var errNoServer = errors.New("lockbench itself serves this lock, so there is no server to hit")

// canFault returns why a fault is not possible, or nil. Reasons that hold for every
// target come first.
func canFault(backend, topology string, k scenario.FaultKind, settings map[string]string) error {
	switch {
	case k.OnClient():
		return nil
	case backend == BackendReference:
		return errNoServer
	}
	// Faults without such needs are injected on clients' connections.
	if needs := k.About().Needs; needs != "" {
		spec := cluster.Spec{Backend: backend, Topology: topology, Settings: settings}
		if err := spec.Supports(needs); err != nil {
			return err
		}
	}
	switch servers := cluster.Guarantees(backend, topology, settings); {
	case servers.Leaderless && slices.Contains([]string{scenario.TargetLeader, scenario.TargetFollower}, k.Target):
		return fmt.Errorf("%w: no server leads the others; aim at %s or node:1", cluster.ErrUnsupported, scenario.TargetServing)
	case servers.KeysPerServer && slices.Contains([]string{scenario.TargetMinority, scenario.TargetMajority}, k.Target):
		return fmt.Errorf("%w: each server has keys of its own, so there is no quorum; aim at %s", cluster.ErrUnsupported, scenario.TargetServing)
	}
	return nil
}

// Unavailable returns why this machine cannot inject a scenario's faults as
// specified, or nil. The suite's expansion has checked whether the servers
// support them.
func Unavailable(sc scenario.Scenario) error {
	for _, f := range sc.Faults {
		err := chaos.Available(f.Kind)
		k, _ := chaos.ParseKind(f.Kind)
		switch {
		case err != nil:
		case !k.OnClient():
			err = cluster.Missing(k.About().Needs)
		case sc.Wire == scenario.WireKernel && k.About().Wire:
			err = netdrop.Available()
		}
		if err != nil {
			return fmt.Errorf("%s cannot be injected here: %w", f.Kind, err)
		}
	}
	return nil
}
