package workloads

import (
	"errors"
	"fmt"
	"slices"
)

// carryOut does what the controller asks for, beside the load.
func (w *worker) carryOut(e errand) *answer {
	a := &answer{Serial: e.Serial}
	var errs []error
	for _, id := range e.Clients {
		c := w.client(id)
		if c == nil {
			errs = append(errs, fmt.Errorf("this worker has no client %d", id))
			continue
		}
		if err := c.carryOut(e, a); err != nil {
			errs = append(errs, fmt.Errorf("client %d: %w", id, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		a.Error = err.Error()
	}
	slices.Sort(a.Peers)
	a.Peers = slices.Compact(a.Peers)
	return a
}

func (w *worker) client(id uint32) *client {
	if i := slices.Index(w.load.spec.Clients, id); i >= 0 {
		return w.clients[i]
	}
	return nil
}

// carryOut does one client's part, and adds what came of it to a. It is called
// while the client works: what it touches is safe for that.
func (c *client) carryOut(e errand, a *answer) error {
	switch {
	case e.Apply != nil:
		rule := *e.Apply
		rule.Seed = mix(rule.Seed) ^ uint64(c.id) // no two clients in step
		return c.dialer.Apply(e.Rule, e.Addresses, rule)
	case e.Lift:
		a.Effect.Add(c.dialer.Lift(e.Rule))
	case e.Peers:
		a.Peers = append(a.Peers, c.dialer.Peers()...)
	case e.Skew != nil:
		c.hands.Set(*e.Skew)
	}
	return nil
}
