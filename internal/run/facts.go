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
		ID: info.ID, Backend: info.Backend, Bound: string(info.Bound), Fencing: info.Fencing,
		Broken: info.Broken, Topologies: info.Topologies, GrantsPerServer: info.GrantsPerServer, Takeover: info.Takeover,
		Nodes: func(topology string) int { return cluster.Size(info.Backend, topology) },
		CheckTTL: func(ttl time.Duration, settings map[string]string) error {
			return r.CheckTTL(ttl, cluster.LimitsFor(info.Backend, settings))
		},
		CanFault: func(topology string, k scenario.FaultKind, settings map[string]string) error {
			return canFault(info.Backend, topology, k, settings)
		},
		Keeps: func(topology string, k scenario.FaultKind, settings map[string]string) bool {
			return keeps(info.Backend, topology, k, settings)
		},
	}
	// A recipe whose inner release frees the lock does not promise the property,
	// and lets its holder lock again all the same; its name says so.
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
var errNoServer = errors.New("lockbench itself serves this lock, so there is no server to hurt")

// canFault tells why a fault cannot be, or nil. What no aim can mend comes first.
func canFault(backend, topology string, k scenario.FaultKind, settings map[string]string) error {
	switch {
	case k.OnClient():
		return nil
	case backend == BackendReference:
		return errNoServer
	}
	if err := suffers(cluster.Spec{Backend: backend, Topology: topology, Settings: settings}, k); err != nil {
		return err
	}
	switch {
	case equals(backend, topology) && slices.Contains([]string{scenario.TargetLeader, scenario.TargetFollower}, k.Target):
		return fmt.Errorf("%w: nobody leads among them; aim at %s or node:1", cluster.ErrUnsupported, scenario.TargetServing)
	case topology == "sharded" && slices.Contains([]string{scenario.TargetMinority, scenario.TargetMajority}, k.Target):
		return fmt.Errorf("%w: each server has keys of its own, so there is no quorum; aim at %s", cluster.ErrUnsupported, scenario.TargetServing)
	}
	return nil
}

// suffers tells why servers cannot suffer a fault's action, whichever of them it
// hits, or nil.
func suffers(spec cluster.Spec, k scenario.FaultKind) error {
	if k.Needs() == "" {
		return nil // clients' connections carry it, whatever the servers are
	}
	return spec.Suffers(k.Needs())
}

// equals reports whether nobody leads among the servers of a topology.
func equals(backend, topology string) bool {
	return topology == "sharded" || topology == "galera" || topology == "quorum" && backend == "redis"
}

// keeps reports whether servers are known to keep every lock that they granted
// through a fault of theirs, as long as its holder is heard of.
func keeps(backend, topology string, k scenario.FaultKind, settings map[string]string) bool {
	consensus := backend == "etcd" || backend == "zookeeper"
	switch k.Action {
	case scenario.ActEvict, scenario.ActFlush:
		return false
	case scenario.ActClock:
		return consensus || backend == "memcached" // they read a monotonic clock
	case scenario.ActDelay, scenario.ActThrottle, scenario.ActReset, scenario.ActRefuse, scenario.ActClose, scenario.ActSlowDisk, scenario.ActFull, scenario.ActCutClients:
		return true
	case scenario.ActKill, scenario.ActRestart:
		if !durable(backend, settings) {
			return false
		}
	}
	// What is left may end in another leader, who need not know of the last
	// grants: but by consensus he does.
	return topology != "replicated" || k.Target == scenario.TargetFollower
}

// durable reports whether a server that is killed has what it granted when it is
// started again.
func durable(backend string, settings map[string]string) bool {
	switch backend {
	case "etcd", "zookeeper", "mysql":
		return true
	case "redis":
		return settings["appendonly"] == "yes" && settings["appendfsync"] == "always"
	}
	return false
}

// Unavailable says why this machine cannot inject a scenario's faults as it
// wants them, or nil. Whether its servers can suffer them is another question,
// which the suite's expansion has asked.
func Unavailable(sc scenario.Scenario) error {
	for _, f := range sc.Faults {
		err := chaos.Available(f.Kind)
		k, _ := scenario.ParseFaultKind(f.Kind)
		switch {
		case err != nil:
		case !k.OnClient():
			err = cluster.Missing(k.Needs())
		case sc.Wire == scenario.WireKernel && k.Wire():
			err = netdrop.Available()
		}
		if err != nil {
			return fmt.Errorf("%s cannot be injected here: %w", f.Kind, err)
		}
	}
	return nil
}
