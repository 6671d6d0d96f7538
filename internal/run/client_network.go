package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/netdrop"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/workloads"
)

// The carriers of faults between clients and servers.
const (
	byKernel = "packets dropped by the kernel"
	byProxy  = "a proxy between the client and each server"
)

// clientNetwork is the network between a scenario's clients and its servers. A
// scenario has one carrier of faults there: the kernel, if it can make all of
// them and the run has a network namespace of its own; otherwise a proxy for each
// client, in this process, so that it survives the client's. Without such faults
// the clients have plain connections.
type clientNetwork struct {
	pool      *workloads.Pool  // set once the clients are there
	board     *workloads.Board // set with the pool
	cluster   *cluster.Cluster // nil for the reference backend
	keys      []string
	name      string // distinguishes the scenario's rules from others in the kernel
	clients   []uint32
	addresses []string // of the servers, and of those that know the leader

	dropper *netdrop.Dropper // nil: not by the kernel
	sources map[uint32]net.IP
	proxies map[uint32]*faultnet.Proxy // by client; nil: not by proxies

	mu      sync.Mutex
	applied map[string][]*faultnet.Proxy // rules in force, by id; no proxies: in the kernel
}

// newClientNetwork prepares what the scenario's faults need. The caller must
// close it.
func newClientNetwork(name string, sc scenario.Scenario, s servers, keys []string, d *netdrop.Dropper) (*clientNetwork, error) {
	n := &clientNetwork{name: name, cluster: s.cluster, keys: keys, applied: map[string][]*faultnet.Proxy{}, addresses: append(append([]string{}, s.addresses...), s.directory...)}
	for c := range uint32(sc.Clients) {
		n.clients = append(n.clients, c)
	}
	switch {
	case !hasFault(sc, func(k scenario.FaultKind) bool { return k.About().Wire }):
	case d != nil && s.cluster != nil && kernelCarries(sc):
		n.dropper, n.sources = d, map[uint32]net.IP{}
		for _, c := range n.clients {
			n.sources[c] = sourceOf(c)
		}
	default:
		n.proxies = map[uint32]*faultnet.Proxy{}
		for _, c := range n.clients {
			p, err := faultnet.ListenDialer()
			if err != nil {
				return nil, errors.Join(fmt.Errorf("put proxies between clients and servers: %w", err), n.close())
			}
			n.proxies[c] = p
		}
	}
	return n, nil
}

// sourceOf is the address that a client dials from: the kernel distinguishes
// clients by it.
func sourceOf(client uint32) net.IP {
	const hosts = 254
	return net.IPv4(127, 77, byte(client/hosts), byte(client%hosts+1)).To4()
}

// proxyAddresses are the addresses of the clients' proxies.
func (n *clientNetwork) proxyAddresses() map[uint32]string {
	list := map[uint32]string{}
	for c, p := range n.proxies {
		list[c] = p.Addr()
	}
	return list
}

// close ends the proxies.
func (n *clientNetwork) close() error {
	var errs []error
	for _, p := range n.proxies {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// Apply implements chaos.Wires.
func (n *clientNetwork) Apply(_ context.Context, id string, clients []uint32, addresses []string, rule faultnet.Rule) (how string, err error) {
	if len(clients) == 0 {
		clients = n.clients
	}
	if len(addresses) == 0 {
		addresses = n.addresses
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, taken := n.applied[id]; taken {
		return "", fmt.Errorf("apply %s: a rule with this id is in force", id)
	}
	if n.dropper != nil {
		if err := n.drop(id, clients, addresses, rule); err != nil {
			return "", err
		}
		n.applied[id] = nil
		return byKernel, nil
	}
	proxies, err := n.applyByProxy(id, clients, addresses, rule)
	if err != nil {
		return "", fmt.Errorf("apply %s: %w", id, err)
	}
	n.applied[id] = proxies
	return byProxy, nil
}

// drop makes the kernel drop packets between clients and addresses.
func (n *clientNetwork) drop(id string, clients []uint32, addresses []string, rule faultnet.Rule) error {
	if rule != (faultnet.Rule{CutIn: rule.CutIn, CutOut: rule.CutOut, Seed: rule.Seed}) {
		return fmt.Errorf("apply %s: the kernel can only cut connections", id)
	}
	var pairs []netdrop.Pair
	for _, c := range clients {
		from, ok := netip.AddrFromSlice(n.sources[c])
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
	return n.dropper.Apply(n.kernelID(id), pairs, rule.CutIn, rule.CutOut)
}

func (n *clientNetwork) kernelID(id string) string { return n.name + "/" + id }

// applyByProxy puts the rule in the proxies of all clients, or of none.
func (n *clientNetwork) applyByProxy(id string, clients []uint32, addresses []string, rule faultnet.Rule) (done []*faultnet.Proxy, err error) {
	seed := rule.Seed
	for _, c := range clients {
		rule.Seed = seed ^ uint64(c+1)<<32 // each client's jitter differs
		p := n.proxies[c]
		if p == nil {
			err = fmt.Errorf("there is no proxy for client %d", c)
		} else if err = p.Apply(id, rule, addresses...); err == nil {
			done = append(done, p)
		}
		if err != nil {
			for _, p := range done {
				p.Lift(id)
			}
			return nil, err
		}
	}
	return done, nil
}

// Lift implements chaos.Wires. It may be called again after an error.
func (n *clientNetwork) Lift(_ context.Context, id string) (e faultnet.Effect, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	proxies, ok := n.applied[id]
	switch {
	case !ok:
		return e, nil
	case n.dropper != nil:
		if e.Packets, err = n.dropper.Lift(n.kernelID(id)); err != nil {
			return e, err
		}
	}
	for _, p := range proxies {
		e.Add(p.Lift(id))
	}
	delete(n.applied, id)
	return e, nil
}

// Peers implements chaos.Wires. For a client that holds a key that one of several
// servers stores, it is that server.
func (n *clientNetwork) Peers(ctx context.Context, client uint32) ([]string, error) {
	peers, err := n.pool.Peers(ctx, client)
	st := n.board.Status(client)
	if err != nil || len(peers) < 2 || n.cluster == nil || st.State != workloads.Holding {
		return peers, err
	}
	node, err := n.cluster.WhoHas(ctx, n.keys[st.Key])
	if err != nil {
		return peers, nil // no single server stores it, or it is not known now
	}
	return n.cluster.Addresses()[node : node+1], nil
}

// Skew implements chaos.Wires.
func (n *clientNetwork) Skew(ctx context.Context, client uint32, by time.Duration) error {
	return n.pool.Skew(ctx, client, by)
}
