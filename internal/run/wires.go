package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/netdrop"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/workloads"
)

// The mechanisms that carry faults between clients and servers.
const (
	byKernel = "packets dropped by the kernel"
	byProxy  = "a proxy between the client and each server"
	byDialer = "the client's dialer"
)

// wires is what lies between a scenario's clients and its servers. What may be
// cut by the kernel is, where the run has a network of its own. Otherwise the
// dialer of each client does it, in the client's own process; but where a client
// is to be cut off and then killed, a dialer would die with it, so that cuts are
// made by proxies that live here.
type wires struct {
	pool      *workloads.Pool  // set once the clients are there
	board     *workloads.Board // likewise
	cluster   *cluster.Cluster // nil for the reference backend
	keys      []string
	name      string // tells the scenario's rules from those of others in the kernel
	clients   []uint32
	addresses []string // of the servers, and of those that tell where the leader is

	dropper *netdrop.Dropper // nil: not by the kernel
	sources map[uint32]net.IP
	proxies map[uint32]map[string]*faultnet.Proxy // by client and address; none: not by proxies

	mu      sync.Mutex
	applied map[string]applied // by id
}

// applied is a rule in force.
type applied struct {
	how     string
	proxies []*faultnet.Proxy
}

// newWires prepares what the scenario's faults need. The caller owes a close.
func newWires(ctx context.Context, name string, sc scenario.Scenario, s servers, keys []string, d *netdrop.Dropper) (_ *wires, err error) {
	w := &wires{name: name, cluster: s.cluster, keys: keys, applied: map[string]applied{}, addresses: append(append([]string{}, s.addresses...), s.directory...)}
	for c := range uint32(sc.Clients) {
		w.clients = append(w.clients, c)
	}
	if s.cluster == nil || !cuts(sc) {
		return w, nil
	}
	if d != nil && sc.Wire != scenario.WireDialer {
		w.dropper, w.sources = d, map[uint32]net.IP{}
		for _, c := range w.clients {
			w.sources[c] = sourceOf(c)
		}
		return w, nil
	}
	if !cutsAndKills(sc) {
		return w, nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("put proxies between clients and servers: %w", err), w.close())
		}
	}()
	w.proxies = map[uint32]map[string]*faultnet.Proxy{}
	for _, c := range w.clients {
		w.proxies[c] = map[string]*faultnet.Proxy{}
		for _, a := range w.addresses {
			if w.proxies[c][a], err = faultnet.Listen("127.0.0.1:0", a); err != nil {
				delete(w.proxies[c], a)
				return nil, err
			}
		}
	}
	return w, ctx.Err()
}

// sourceOf is the address that a client dials from: its own, for the kernel
// tells clients apart by it.
func sourceOf(client uint32) net.IP {
	const hosts = 254
	return net.IPv4(127, 77, byte(client/hosts), byte(client%hosts+1)).To4()
}

// via is what each client dials instead of the servers' addresses; nil: these
// themselves.
func (w *wires) via() map[uint32]map[string]string {
	if w.proxies == nil {
		return nil
	}
	all := map[uint32]map[string]string{}
	for c, proxies := range w.proxies {
		all[c] = map[string]string{}
		for a, p := range proxies {
			all[c][a] = p.Addr()
		}
	}
	return all
}

// close ends the proxies.
func (w *wires) close() error {
	var errs []error
	for _, proxies := range w.proxies {
		for _, p := range proxies {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}

// Apply implements chaos.Wires.
func (w *wires) Apply(ctx context.Context, id string, clients []uint32, addresses []string, rule faultnet.Rule) (how string, err error) {
	if len(clients) == 0 {
		clients = w.clients
	}
	if len(addresses) == 0 {
		addresses = w.addresses
	}
	a := applied{how: w.mechanism(rule)}
	w.mu.Lock()
	_, taken := w.applied[id]
	if !taken {
		w.applied[id] = a
	}
	w.mu.Unlock()
	if taken {
		return "", fmt.Errorf("apply %s: a rule of that name is in force", id)
	}
	switch a.how {
	case byKernel:
		err = w.drop(id, clients, addresses, rule)
	case byProxy:
		a.proxies, err = w.applyByProxy(id, clients, addresses, rule)
	default:
		err = w.pool.Apply(ctx, id, clients, addresses, rule)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		delete(w.applied, id)
		return "", err
	}
	w.applied[id] = a
	return a.how, nil
}

// mechanism is what carries a rule.
func (w *wires) mechanism(rule faultnet.Rule) string {
	pure := rule == faultnet.Rule{CutIn: rule.CutIn, CutOut: rule.CutOut, Seed: rule.Seed}
	switch {
	case !pure:
		return byDialer
	case w.dropper != nil:
		return byKernel
	case w.proxies != nil:
		return byProxy
	}
	return byDialer
}

// drop lets the kernel lose packets between clients and addresses.
func (w *wires) drop(id string, clients []uint32, addresses []string, rule faultnet.Rule) error {
	var pairs []netdrop.Pair
	for _, c := range clients {
		from, ok := netip.AddrFromSlice(w.sources[c])
		if !ok {
			return fmt.Errorf("apply %s: there is no client %d", id, c)
		}
		for _, a := range addresses {
			to, err := netip.ParseAddrPort(a)
			if err != nil {
				return fmt.Errorf("apply %s: %w", id, err)
			}
			pairs = append(pairs, netdrop.Pair{Client: from, Server: to})
		}
	}
	return w.dropper.Apply(w.kernelID(id), pairs, rule.CutIn, rule.CutOut)
}

func (w *wires) kernelID(id string) string { return w.name + "/" + id }

func (w *wires) applyByProxy(id string, clients []uint32, addresses []string, rule faultnet.Rule) (done []*faultnet.Proxy, err error) {
	for _, c := range clients {
		for _, a := range addresses {
			p := w.proxies[c][a]
			if p == nil {
				err = fmt.Errorf("there is no proxy between client %d and %s", c, a)
			} else if err = p.Apply(id, rule); err == nil {
				done = append(done, p)
			}
			if err != nil {
				for _, p := range done {
					p.Lift(id)
				}
				return nil, fmt.Errorf("apply %s: %w", id, err)
			}
		}
	}
	return done, nil
}

// Lift implements chaos.Wires. What could not be lifted may be tried again.
func (w *wires) Lift(ctx context.Context, id string) (e chaos.Effect, err error) {
	w.mu.Lock()
	a, ok := w.applied[id]
	delete(w.applied, id)
	w.mu.Unlock()
	defer func() {
		if err != nil {
			w.mu.Lock()
			w.applied[id] = a
			w.mu.Unlock()
		}
	}()
	switch {
	case !ok:
	case a.how == byKernel:
		e.Packets, err = w.dropper.Lift(w.kernelID(id))
	case a.how == byProxy:
		for _, p := range a.proxies {
			e.Add(p.Lift(id))
		}
	default:
		e.Effect, err = w.pool.Lift(ctx, id)
	}
	return e, err
}

// Peers implements chaos.Wires. Of a client that holds a key whose place is one
// of several servers, it is that one.
func (w *wires) Peers(ctx context.Context, client uint32) ([]string, error) {
	peers, err := w.pool.Peers(ctx, client)
	st := w.board.Status(client)
	if err != nil || len(peers) < 2 || w.cluster == nil || st.State != workloads.Holding {
		return peers, err
	}
	node, err := w.cluster.WhoHas(ctx, w.keys[st.Key])
	if err != nil {
		return peers, nil // it has no such place, or not now
	}
	return w.cluster.Addresses()[node : node+1], nil
}

// Skew implements chaos.Wires.
func (w *wires) Skew(ctx context.Context, client uint32, by time.Duration) error {
	return w.pool.Skew(ctx, client, by)
}
