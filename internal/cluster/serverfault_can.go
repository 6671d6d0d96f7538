package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/backend/all"
	"github.com/lockbench/lockbench/internal/scenario"
)

// ErrMachine: this machine cannot do it; the message names what it lacks.
var ErrMachine = errors.New("not on this machine")

// Can returns why these servers lack an ability (scenario.AbilityKill...),
// or nil. The error is ErrUnsupported or ErrMachine, with
// the reason.
func (c *Cluster) Can(ability string) error {
	if err := c.spec.Supports(ability); err != nil {
		return err
	}
	switch ability {
	case scenario.AbilityLinks:
		if !c.spec.Links && c.spec.Containers == nil && len(c.servers.Topology.Links) > 0 {
			return fmt.Errorf("%w: their links do not run through proxies; start them with Spec.Links", ErrUnsupported)
		}
	case scenario.AbilityClock:
		for _, n := range c.Nodes() {
			if err := c.shimmed(n); n.Alive() && err != nil {
				return err
			}
		}
	case scenario.AbilitySlowDisk:
		for _, n := range c.Nodes() {
			if n.Alive() && c.shimmed(n) != nil {
				return missingTracer()
			}
		}
	}
	return nil
}

// Missing returns what this machine lacks for an ability of servers, or nil. The
// error is ErrMachine, and explains how to get it.
func Missing(ability string) error {
	switch ability {
	case scenario.AbilityClock:
		return missingShim()
	case scenario.AbilitySlowDisk:
		return missingTracer()
	case scenario.AbilityLinks:
		if runtime.GOOS != "linux" {
			return fmt.Errorf("%w: the links between servers can be cut on Linux only", ErrMachine)
		}
	}
	return nil
}

// Supports returns why servers of this specification, with its settings, do not
// have an ability, or nil, without starting any. Links and Clock may still be
// unset.
func (s Spec) Supports(ability string) error {
	b, err := all.Find(s.Backend)
	if err != nil {
		return err
	}
	topology := cmp.Or(s.Topology, b.Describe().Topologies[0].Name)
	if err := Supports(s.Backend, topology, ability); err != nil {
		return err
	}
	if t, _ := b.Describe().Topology(topology); s.Containers != nil && notInContainers(t, ability) != "" {
		return fmt.Errorf("%w: %s", ErrUnsupported, notInContainers(t, ability))
	}
	if b, ok := b.(backend.Selective); ok {
		if reason := b.UnsupportedWith(s.Settings, ability); reason != "" {
			return fmt.Errorf("%w: %s", ErrUnsupported, reason)
		}
	}
	return nil
}

// Supports returns why no servers of a backend and topology have an ability,
// whatever their settings, or nil. It needs no servers. The error is
// ErrUnsupported with the reason, or ErrSpec if there is no such backend,
// topology or ability.
func Supports(name, topology, ability string) error {
	b, err := all.Find(name)
	if err != nil {
		return err
	}
	d := b.Describe()
	t, ok := d.Topology(topology)
	if !ok {
		return fmt.Errorf("%w: %s has no topology %q: choose from %v", ErrSpec, name, topology, Topologies(name))
	}
	if !slices.Contains(scenario.Abilities(), ability) {
		return fmt.Errorf("%w: servers have no ability %q: choose from %v", ErrSpec, ability, scenario.Abilities())
	}
	reason := d.Unsupported[ability]
	switch {
	case ability == scenario.AbilityLinks && len(t.Links) == 0:
		reason = fmt.Sprintf("the servers of %s (%s) have no links to one another; use cut-clients", name, topology)
	case ability == scenario.AbilityMove && (t.Leaderless || reason == "" && len(t.Links) == 0):
		reason = fmt.Sprintf("no server leads the others in %s (%s)", name, topology)
	case reason == "" && !able(b, ability):
		reason = fmt.Sprintf("%s has no command for it", name)
	}
	if reason != "" {
		return fmt.Errorf("%w: %s", ErrUnsupported, reason)
	}
	return nil
}

// able reports whether a backend has what an ability needs.
func able(b backend.Backend, ability string) (ok bool) {
	switch ability {
	case scenario.AbilityClose:
		_, ok = b.(backend.ClientCloser)
	case scenario.AbilityEvict:
		_, ok = b.(backend.Evicter)
	case scenario.AbilityFull:
		_, ok = b.(backend.Filler)
	case scenario.AbilityFlush:
		_, ok = b.(backend.Flusher)
	case scenario.AbilityMove:
		_, ok = b.(backend.LeadMover)
	default:
		ok = true
	}
	return ok
}
