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

// clusterKey tells clusters apart: scenarios with the same key share one.
type clusterKey struct {
	backend, topology, settings string
	rig                         rig
}

// rig is what faults need servers to be started with. Servers without it are as
// they are in production, and those are the ones whose speed counts: so only
// scenarios with faults get servers that have any of it, all of them what one of
// them needs.
type rig struct {
	links bool // between the servers run through proxies
	clock bool // can be set
}

func (r rig) and(x rig) rig { return rig{r.links || x.links, r.clock || x.clock} }

// rigFor is what a scenario's faults need of servers that can be given it.
func rigFor(sc scenario.Scenario, spec cluster.Spec) (r rig) {
	for _, f := range sc.Faults {
		kind, _ := chaos.ParseKind(f.Kind)
		if kind.OnClient() {
			continue
		}
		if kind.About().Links && spec.Supports(scenario.AbilityLinks) == nil {
			r.links = true
		}
		// What makes a clock settable makes a disk slow, too, at less cost than
		// the alternative.
		if kind.About().Prepared &&
			spec.Supports(scenario.AbilityClock) == nil && cluster.Missing(scenario.AbilityClock) == nil {
			r.clock = true
		}
	}
	return r
}

func canonical(settings map[string]string) string {
	pairs := make([]string, 0, len(settings))
	for k, v := range settings {
		pairs = append(pairs, fmt.Sprintf("%q=%q", k, v))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// need is one cluster that scenarios ask for.
type need struct {
	key      clusterKey
	settings map[string]string
	clients  int // the most that any scenario brings
	variant  int // 0, or the how-manieth cluster of this backend and topology
	uses     int // scenarios that it serves
}

// name is fit for a folder's name and unique among a run's clusters.
func (n need) name() string {
	name := n.key.backend + "-" + n.key.topology
	if n.variant > 0 {
		name += fmt.Sprintf("-%d", n.variant+1)
	}
	return name
}

// spec is how the servers are to be started, but for the binary and the logs.
func (n need) spec() cluster.Spec {
	topology, _ := all.Describe(n.key.backend).Topology(n.key.topology)
	return cluster.Spec{
		Backend: n.key.backend, Topology: n.key.topology, Settings: n.settings, Clients: n.clients,
		Links: n.key.rig.links, Clock: n.key.rig.clock,
		Keeper: topology.Keeper,
	}
}

// needs lists the clusters of the scenarios, in the order of their first use,
// and by scenario which of them is its own: the key of a scenario without one
// has its backend alone.
func needs(scenarios []scenario.Scenario, find func(string) (impls.Recipe, bool)) (list []need, keys []clusterKey, err error) {
	rigs := map[clusterKey]rig{} // by keys that have none yet: what scenarios with faults need together
	for _, sc := range scenarios {
		r, ok := find(sc.Recipe)
		if !ok {
			return nil, nil, fmt.Errorf("scenario %s: no recipe %q", sc.Name, sc.Recipe)
		}
		k := clusterKey{backend: r.Info().Backend}
		if k.backend != BackendReference {
			k.topology, k.settings = sc.Topology, canonical(sc.Servers[k.backend])
			rigs[k] = rigs[k].and(rigFor(sc, cluster.Spec{Backend: k.backend, Topology: k.topology, Settings: sc.Servers[k.backend]}))
		}
		keys = append(keys, k)
	}
	for i, sc := range scenarios {
		k := &keys[i]
		if k.backend == BackendReference {
			continue
		}
		if len(sc.Faults) > 0 {
			k.rig = rigs[*k]
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
