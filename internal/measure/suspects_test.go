package measure

import (
	"testing"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// TestApart: if each server grants by itself, that explains violations without a
// fault; it does not for the same lock on one server.
func TestApart(t *testing.T) {
	info := impls.Info{Topologies: []string{"single", "galera"}, GrantsPerServer: []string{"galera"}}
	for topology, want := range map[string]int{"single": 0, "galera": 1} {
		d := &derivation{input: &input{info: info, scenario: scenario.Scenario{Topology: topology}}}
		if list := d.suspects(); len(list) != want {
			t.Errorf("on %s: %v", topology, list)
		}
	}
}
