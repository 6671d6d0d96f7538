package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/backend/all"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/scenario"
)

// BackendReference is the backend of the controls: served by the controller
// itself, over a unix socket.
const BackendReference = "reference"

// clusterKey identifies a cluster: scenarios with the same key share one.
type clusterKey struct {
	backend, topology, settings string
	environment                 string
	features                    clusterFeatures
}

// clusterFeatures are what servers must be started with for faults. Servers
// without them run as in production, and figures of speed come from these: so only
// scenarios with faults get servers with features, each of them all that one of
// these scenarios needs.
type clusterFeatures struct {
	links bool // between the servers run through proxies
	clock bool // can be set
}

func (f clusterFeatures) and(x clusterFeatures) clusterFeatures {
	return clusterFeatures{f.links || x.links, f.clock || x.clock}
}

// featuresFor returns the features that a scenario's faults need and these servers
// support.
func featuresFor(sc scenario.Scenario, spec cluster.Spec) (features clusterFeatures) {
	for _, f := range sc.Faults {
		kind, _ := chaos.ParseKind(f.Kind)
		if kind.OnClient() {
			continue
		}
		if kind.About().Links && spec.Supports(scenario.AbilityLinks) == nil {
			features.links = true
		}
		// The library that sets a clock can also slow down a disk, at less cost
		// than strace.
		if kind.About().Prepared &&
			spec.Supports(scenario.AbilityClock) == nil && cluster.Missing(scenario.AbilityClock) == nil {
			features.clock = true
		}
	}
	return features
}

// containersFor is what servers of an environment need; nil for child processes.
func containersFor(environment string) *cluster.Containers {
	if environment == scenario.EnvDocker {
		return &cluster.Containers{}
	}
	return nil
}

func canonical(settings map[string]string) string {
	pairs := make([]string, 0, len(settings))
	for k, v := range settings {
		pairs = append(pairs, fmt.Sprintf("%q=%q", k, v))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// need is one cluster that scenarios need.
type need struct {
	key      clusterKey
	settings map[string]string
	clients  int // the most that any scenario brings
	variant  int // which cluster of this backend and topology, from 0
	uses     int // scenarios that it serves
}

// name is valid as a folder's name and unique among a run's clusters.
func (n need) name() string {
	name := n.key.backend + "-" + n.key.topology
	if n.variant > 0 {
		name += fmt.Sprintf("-%d", n.variant+1)
	}
	return name
}

// spec describes the servers to start, without the binary and the logs.
func (n need) spec() cluster.Spec {
	topology, _ := all.Describe(n.key.backend).Topology(n.key.topology)
	return cluster.Spec{
		Backend: n.key.backend, Topology: n.key.topology, Settings: n.settings, Clients: n.clients,
		Links: n.key.features.links, Clock: n.key.features.clock,
		Keeper: topology.Keeper, Containers: containersFor(n.key.environment),
	}
}

// needs lists the clusters of the scenarios, in the order of their first use, and
// each scenario's key: the key of a scenario without a cluster has only its
// backend.
func needs(scenarios []scenario.Scenario, find func(string) (impls.Recipe, bool)) (list []need, keys []clusterKey, err error) {
	features := map[clusterKey]clusterFeatures{} // by key without features: all that scenarios with faults need
	for _, sc := range scenarios {
		r, ok := find(sc.Recipe)
		if !ok {
			return nil, nil, fmt.Errorf("scenario %s: no recipe %q", sc.Name, sc.Recipe)
		}
		k := clusterKey{backend: r.Info().Backend}
		if k.backend != BackendReference {
			k.topology, k.settings, k.environment = sc.Topology, canonical(sc.Servers[k.backend]), sc.Environment
			features[k] = features[k].and(featuresFor(sc, cluster.Spec{Backend: k.backend, Topology: k.topology, Settings: sc.Servers[k.backend], Containers: containersFor(sc.Environment)}))
		}
		keys = append(keys, k)
	}
	for i, sc := range scenarios {
		k := &keys[i]
		if k.backend == BackendReference {
			continue
		}
		if len(sc.Faults) > 0 {
			k.features = features[*k]
		}
		at := slices.IndexFunc(list, func(n need) bool { return n.key == *k })
		if at < 0 {
			n := need{key: *k, settings: sc.Servers[k.backend]}
			for _, other := range list {
				if other.key.backend == k.backend && other.key.topology == k.topology {
					n.variant++
				}
			}
			list = append(list, n)
			at = len(list) - 1
		}
		list[at].clients = max(list[at].clients, sc.Clients)
		list[at].uses++
	}
	return list, keys, nil
}
