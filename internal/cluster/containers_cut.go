package cluster

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/container"
	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/netdrop"
)

// linkCut is a cut between servers in containers: in the network of each, the
// kernel drops what arrives from those on the other side.
type linkCut struct {
	from     map[netip.Addr][]netip.Addr // whose packets a server is not to get
	droppers []*netdrop.Dropper
}

// cut drops packets between the servers inside and the others, until lift. A
// server that is started again meanwhile is cut off as before.
func (p *containers) cut(id string, nodes []*Node, inside map[string]bool, rule faultnet.Rule) error {
	if rule != (faultnet.Rule{CutIn: rule.CutIn, CutOut: rule.CutOut, Seed: rule.Seed}) {
		return fmt.Errorf("%w: links between containers can be cut, not delayed: that takes the kernel module netem, which many machines lack", ErrUnsupported)
	}
	cut := &linkCut{from: map[netip.Addr][]netip.Addr{}}
	for _, n := range nodes {
		for _, other := range nodes {
			into := inside[n.Name] && !inside[other.Name] && rule.CutIn
			outOf := !inside[n.Name] && inside[other.Name] && rule.CutOut
			if into || outOf {
				to := netip.MustParseAddr(n.Host)
				cut.from[to] = append(cut.from[to], netip.MustParseAddr(other.Host))
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cuts[id] != nil {
		return fmt.Errorf("%w: a cut %q is in force already; LiftLinks it first", ErrSpec, id)
	}
	for _, n := range nodes {
		if !n.Alive() {
			continue
		}
		if err := cut.drop(id, n.Process, netip.MustParseAddr(n.Host)); err != nil {
			_, lift := cut.lift(id)
			return errors.Join(fmt.Errorf("%s: %w", n.Name, err), lift)
		}
	}
	if p.cuts == nil {
		p.cuts = map[string]*linkCut{}
	}
	p.cuts[id] = cut
	return nil
}

// drop puts a cut in force for one server.
func (c *linkCut) drop(id string, p backend.Process, host netip.Addr) error {
	if len(c.from[host]) == 0 {
		return nil
	}
	d, err := netdrop.OpenAt(p.PID())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMachine, err)
	}
	c.droppers = append(c.droppers, d)
	return d.ApplyFrom(id, c.from[host])
}

// cutAgain puts the cuts in force for a server that was started again.
func (p *containers) cutAgain(c *container.Container, host netip.Addr) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, cut := range p.cuts {
		if err := cut.drop(id, c, host); err != nil {
			return err
		}
	}
	return nil
}

// lift ends a cut, if it is in force.
func (p *containers) lift(id string) (faultnet.Effect, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cut := p.cuts[id]
	if cut == nil {
		return faultnet.Effect{}, nil
	}
	delete(p.cuts, id)
	return cut.lift(id)
}

func (c *linkCut) lift(id string) (e faultnet.Effect, err error) {
	for _, d := range c.droppers {
		packets, errLift := d.Lift(id)
		e.Packets += packets
		err = errors.Join(err, errLift, d.Close())
	}
	return e, err
}
