package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/scenario"
)

// BackendReference is the backend of the controls: served by the controller
// itself, over a unix socket.
const BackendReference = "reference"

// clusterKey tells clusters apart: scenarios with the same key share one.
type clusterKey struct {
	backend, topology, settings string
}

func keyOf(sc scenario.Scenario, backend string) clusterKey {
	return clusterKey{backend, sc.Topology, canonical(sc.Servers[backend])}
}

func canonical(settings map[string]string) string {
	pairs := make([]string, 0, len(settings))
	for k, v := range settings {
		pairs = append(pairs, fmt.Sprintf("%q=%q", k, v))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// need is one cluster that the scenarios ask for.
type need struct {
	key      clusterKey
	settings map[string]string
	clients  int // the most that any scenario brings
	variant  int // 0, or the how-manieth set of settings of this backend and topology
}

// name is fit for a folder's name and unique among a run's clusters.
func (n need) name() string {
	name := n.key.backend + "-" + n.key.topology
	if n.variant > 0 {
		name += fmt.Sprintf("-%d", n.variant+1)
	}
	return name
}

// needs lists the clusters of the scenarios, in the order of their first use.
func needs(scenarios []scenario.Scenario, find func(string) (impls.Recipe, bool)) ([]need, error) {
	var list []need
	for _, sc := range scenarios {
		r, ok := find(sc.Recipe)
		if !ok {
			return nil, fmt.Errorf("scenario %s: no recipe %q", sc.Name, sc.Recipe)
		}
		backend := r.Info().Backend
		if backend == BackendReference {
			continue
		}
		k := keyOf(sc, backend)
		i := slices.IndexFunc(list, func(n need) bool { return n.key == k })
		if i < 0 {
			n := need{key: k, settings: sc.Servers[backend]}
			for _, other := range list {
				if other.key.backend == k.backend && other.key.topology == k.topology {
					n.variant++
				}
			}
			list = append(list, n)
			i = len(list) - 1
		}
		list[i].clients = max(list[i].clients, sc.Clients)
	}
	return list, nil
}
