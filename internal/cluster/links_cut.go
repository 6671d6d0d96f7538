package cluster

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/internal/faultnet"
)

// CutLinks puts a rule on all links between the nodes of side and all other
// servers, those that watch them and the keeper too, until LiftLinks with the
// same id; how describes the means. The client of the rule is the side: CutOut
// holds back what its nodes send, CutIn what the others send to them, whichever of
// the two has connected. Clients are not affected.
//
// The error is ErrUnsupported where servers have no links, or where these do not
// run through proxies (see Spec.Links); ErrSpec for a side that does not exist
// or leaves no server on the other; ErrStopped. Nothing is cut then.
func (c *Cluster) CutLinks(ctx context.Context, id string, side []int, rule faultnet.Rule) (how string, err error) {
	if err := c.cutLinks(ctx, id, side, rule); err != nil {
		return "", fmt.Errorf("cut links of %s: %w", c.spec.Backend, err)
	}
	if c.spec.Containers != nil {
		return "packets between containers dropped by the kernel", nil
	}
	return "proxies between servers", nil
}

func (c *Cluster) cutLinks(ctx context.Context, id string, side []int, rule faultnet.Rule) error {
	if err := noLinks(c.servers.Topology); err != nil {
		return err
	}
	cuts, inContainers := c.place.(*containers)
	if c.links == nil && !inContainers {
		return fmt.Errorf("%w: they do not run through proxies: start the cluster with Spec.Links", ErrUnsupported)
	}
	inside := map[string]bool{}
	nodes := c.Nodes()
	for _, node := range side {
		if node < 0 || node >= len(nodes) {
			return fmt.Errorf("%w: it has no node %d; its %d nodes are counted from 0", ErrSpec, node, len(nodes))
		}
		inside[nodes[node].Name] = true
	}
	if len(inside) == 0 || len(inside) == len(nodes) && len(c.servers.Watchers) == 0 {
		return fmt.Errorf("%w: %d of %d nodes on one side leave no link to cut", ErrSpec, len(inside), len(nodes))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if inContainers {
		return cuts.cut(id, c.servers.All(), inside, rule)
	}
	return c.links.cut(id, inside, rule)
}

// LiftLinks removes the rule of CutLinks, and returns its effect, summed over all
// links. Without such a rule it does nothing.
func (c *Cluster) LiftLinks(_ context.Context, id string) (faultnet.Effect, error) {
	if cuts, is := c.place.(*containers); is {
		return cuts.lift(id)
	}
	if c.links == nil {
		return faultnet.Effect{}, nil
	}
	return c.links.lift(id), nil
}

// cut puts a rule on every way that leads into or out of a side.
func (l *links) cut(id string, inside map[string]bool, rule faultnet.Rule) error {
	// The way's client is the server that connects; the rule's is the side.
	back := rule
	back.CutIn, back.CutOut = rule.CutOut, rule.CutIn
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrStopped
	}
	if _, ok := l.cuts[id]; ok {
		return fmt.Errorf("%w: a cut %q is in force already; LiftLinks it first", ErrSpec, id)
	}
	var done []*faultnet.Proxy
	for w, proxy := range l.ways {
		if inside[w.from] == inside[w.to] {
			continue
		}
		r := rule
		if inside[w.to] {
			r = back
		}
		if err := proxy.Apply(id, r); err != nil {
			for _, p := range done {
				p.Lift(id)
			}
			return fmt.Errorf("between %s and %s: %w", w.from, w.to, err)
		}
		done = append(done, proxy)
	}
	l.cuts[id] = done
	return nil
}

func (l *links) lift(id string) (sum faultnet.Effect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, proxy := range l.cuts[id] {
		sum.Add(proxy.Lift(id))
	}
	delete(l.cuts, id)
	return sum
}
