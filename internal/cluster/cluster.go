package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/backend/all"
	"github.com/lockbench/lockbench/internal/supervise"
)

// The errors of servers; see package backend.
var (
	ErrServer      = backend.ErrServer
	ErrSpec        = backend.ErrSpec
	ErrMissing     = backend.ErrMissing
	ErrBinary      = backend.ErrBinary
	ErrNoLeader    = backend.ErrNoLeader
	ErrUnsupported = backend.ErrUnsupported
	ErrNotFull     = backend.ErrNotFull
	ErrNotEvicted  = backend.ErrNotEvicted
	ErrNotFenced   = backend.ErrNotFenced
)

// Node is one start of a server.
type Node = backend.Node

// Spec describes which servers to start.
type Spec struct {
	Backend  string // a name of Backends
	Topology string // see Topologies; "" is single
	Nodes    int    // 0: as many as the topology has by default

	// Settings override the servers' defaults, under the server's own names; see
	// the Command of each backend.
	Settings map[string]string

	Binary  string // of the server, instead of searching; see Find
	LogDir  string // made if need be; "": among the data, gone with it
	Clients int    // connections to allow for; the servers' default limit is never lowered

	Containers *Containers // nil: servers are child processes

	// Features for faults, without cost for other scenarios:
	Links  bool // the links between servers run through proxies, for CutLinks; Linux only
	Clock  bool // the servers' wall clocks can be set, for SetClock
	Keeper bool // a controller promotes a replica when the primary is silent; see backend.Topology
}

// Cluster is a running set of servers. Its methods are safe for concurrent
// use.
type Cluster struct {
	run     *supervise.Run
	place   place
	spec    Spec
	backend backend.Backend
	servers *backend.Cluster // what the backend knows of them

	turns []turn // by node: held while it is killed, started again, hurt or stopped

	roles sync.Mutex // held while roles are given out; see Promote

	links  *links  // nil: the servers talk to one another without proxies; fixed
	keeper *keeper // nil: there is none; fixed

	facts   backend.Facts
	shim    shim    // preloaded into the servers, see Spec.Clock
	tracers tracers // what makes disks slow, see SlowDisk
	readyIn time.Duration

	stopOnce sync.Once
	stopping chan struct{}
	stopErr  error
}

// NodeCounters are one server's counters since its start.
type NodeCounters struct {
	Node string
	// Follower: it applies what a leader or its equals send it, and its own
	// counters do not separate that from requests of clients; so there are none.
	// Figures that span a change of leader mean nothing.
	Follower bool
	Counters map[string]int64
}

// startLimit is how long a cluster may take to serve. The slowest needs about
// four seconds on an idle machine.
const startLimit = 60 * time.Second

// Backends lists the backends that can be started, in the order of reports.
func Backends() []string { return all.Names() }

// Topologies lists the topologies of a backend; none if there is no such
// backend.
func Topologies(backend string) []string {
	var names []string
	for _, t := range all.Describe(backend).Topologies {
		names = append(names, t.Name)
	}
	return names
}

// Size is how many nodes a topology of a backend has where Spec.Nodes is left
// open; 0 if there is no such backend or topology.
func Size(backend, topology string) int {
	if t, ok := all.Describe(backend).Topology(topology); ok {
		return t.Nodes[0]
	}
	return 0
}

// LimitsFor returns which TTLs servers of a backend will serve once they run
// with these settings; what is not set has its production default. Limits of a
// running cluster are read back from it.
func LimitsFor(name string, settings map[string]string) impls.Limits {
	b, err := all.Find(name)
	if l, ok := b.(backend.Limited); err == nil && ok {
		return l.Limits(settings)
	}
	return impls.DefaultLimits()
}

// Find searches a backend's server; see backend.Find.
func Find(name, override string) (backend.Binary, error) {
	b, err := all.Find(name)
	if err != nil {
		return backend.Binary{}, err
	}
	return backend.Find(b, override)
}

// Start starts the servers side by side and returns when all serve requests.
// The error is ErrMissing (with the command that brings the server), ErrSpec,
// or ErrServer (with the last log lines); nothing is left running then.
func Start(ctx context.Context, run *supervise.Run, spec Spec) (*Cluster, error) {
	b, err := all.Find(spec.Backend)
	if err != nil {
		return nil, err
	}
	spec, topology, err := resolve(b, spec)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	// Links are cut in the networks of the containers; nothing has to be prepared.
	spec.Links = spec.Links && spec.Containers == nil
	var where place = processes{run}
	if spec.Containers != nil {
		if where, err = newContainers(ctx, run, spec); err != nil {
			return nil, err
		}
	}
	binary, err := where.find(ctx, b, spec)
	if err != nil {
		return nil, errors.Join(err, where.close(ctx))
	}
	for attempt := 1; ; attempt++ {
		c, err := startOnce(ctx, run, where, b, spec, topology, binary)
		if err == nil {
			return c, nil
		}
		// Another process may take a port between our look and the server's.
		if !errors.Is(err, backend.ErrPortTaken) || attempt == 5 || ctx.Err() != nil {
			return nil, err
		}
	}
}

// resolve fills in defaults and rejects what is not allowed.
func resolve(b backend.Backend, spec Spec) (Spec, backend.Topology, error) {
	d := b.Describe()
	spec.Topology = cmp.Or(spec.Topology, d.Topologies[0].Name)
	t, ok := d.Topology(spec.Topology)
	if !ok {
		return spec, t, fmt.Errorf("%w: %s has no topology %q: choose from %v", ErrSpec, spec.Backend, spec.Topology, Topologies(spec.Backend))
	}
	spec.Nodes = cmp.Or(spec.Nodes, t.Nodes[0])
	if !slices.Contains(t.Nodes, spec.Nodes) {
		return spec, t, fmt.Errorf("%w: a %s topology of %s has %v nodes, not %d", ErrSpec, spec.Topology, spec.Backend, t.Nodes, spec.Nodes)
	}
	if spec.Keeper && !t.Keeper {
		return spec, t, fmt.Errorf("%w: a %s %s replaces no primary: leave Keeper out", ErrSpec, spec.Backend, spec.Topology)
	}
	if spec.Links {
		if err := noLinks(t); err != nil {
			return spec, t, fmt.Errorf("%w: run the links of a %s %s through proxies: %w", ErrSpec, spec.Backend, spec.Topology, err)
		}
	}
	for name := range spec.Settings {
		if slices.Contains(d.Reserved, name) {
			return spec, t, fmt.Errorf("%w: the setting %q of %s is lockbench's own (ports, folders): leave it out", ErrSpec, name, spec.Backend)
		}
	}
	return spec, t, nil
}

func startOnce(ctx context.Context, run *supervise.Run, where place, b backend.Backend, spec Spec, topology backend.Topology, binary backend.Binary) (_ *Cluster, err error) {
	dir, err := os.MkdirTemp(run.Dir(), spec.Backend+"-")
	if err != nil {
		return nil, fmt.Errorf("start %s: make its data folder: %w", spec.Backend, err)
	}
	c := &Cluster{run: run, place: where, spec: spec, backend: b, stopping: make(chan struct{}), servers: &backend.Cluster{
		Backend: spec.Backend, Topology: topology, Settings: spec.Settings, Binary: binary, Clients: spec.Clients,
		Dir: dir, LinksProxied: spec.Links, Kept: spec.Keeper,
	}}
	c.servers.Place = func(ctx context.Context, n *Node, cmd supervise.Command) (backend.Process, error) {
		p, _, err := c.place.start(ctx, n, cmd)
		return p, err
	}
	defer func() {
		if err != nil {
			// Also when ctx has ended: no process may be left running.
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			err = errors.Join(err, c.Stop(stop))
		}
	}()
	if err := c.layOut(ctx); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Backend, err)
	}
	if spec.Links {
		if err := c.openLinks(); err != nil {
			return nil, fmt.Errorf("start %s: %w", spec.Backend, err)
		}
	}
	began := time.Now()
	up := func(_ int, n *Node) error { return c.bringUp(ctx, n) }
	if err := c.servers.Each(up); err != nil {
		return nil, err
	}
	if err := b.Formed(ctx, c.servers); err != nil {
		return nil, fmt.Errorf("start %s: first request: %w: %w", spec.Backend, ErrServer, err)
	}
	// A watcher looks up the nodes when it starts, and then only rarely: so they
	// have to be there already.
	if err := backend.SideBySide(slices.Concat(c.servers.Watchers, c.servers.Proxies), up); err != nil {
		return nil, err
	}
	if err := c.servers.AwaitAll(ctx, func() error { return c.whole(ctx) }); err != nil {
		return nil, fmt.Errorf("start %s: %w: %w", spec.Backend, ErrServer, err)
	}
	c.readyIn = time.Since(began)
	if err := c.readBack(ctx); err != nil {
		return nil, fmt.Errorf("start %s: read its settings back: %w: %w", spec.Backend, ErrServer, err)
	}
	if spec.Keeper {
		if err := c.startKeeper(); err != nil {
			return nil, fmt.Errorf("start %s: %w", spec.Backend, err)
		}
	}
	return c, nil
}

// readBack asks every server for its settings. Where servers differ, their
// values are listed side by side.
func (c *Cluster) readBack(ctx context.Context) error {
	all := map[string]string{}
	for i, n := range c.servers.All() {
		m, err := c.backend.Settings(ctx, c.servers, n)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		for k, v := range m {
			if have, ok := all[k]; i > 0 && ok && have != v {
				v = have + " | " + v
			}
			all[k] = v
		}
	}
	c.servers.ReadBack = all
	facts, err := c.backend.Facts(ctx, c.servers, c.Nodes()[0])
	c.facts = facts
	return err
}

// Addresses of the servers, in node order, as clients use them.
func (c *Cluster) Addresses() []string { return c.servers.Addresses() }

// Directory lists the addresses of the watchers, which report the leader to
// clients; if links run through proxies they are the addresses of their fronts.
// It is empty where clients find the leader by themselves.
func (c *Cluster) Directory() []string { return c.servers.Directory() }

// Account to log in with; empty where the backend wants none.
func (c *Cluster) Account() impls.Account { return c.facts.Account }

// Limits of the servers that decide which TTLs can be served.
func (c *Cluster) Limits() impls.Limits { return c.facts.Limits }

// Nodes of the cluster, in order, as they were started last.
func (c *Cluster) Nodes() []*Node { return c.servers.Nodes() }

// Counters reads every node's counters of requests, since its start, without
// those that lockbench sent. The names are the backend's own; see the Counters
// of each.
func (c *Cluster) Counters(ctx context.Context) ([]NodeCounters, error) {
	list := make([]NodeCounters, c.spec.Nodes)
	err := c.servers.Each(func(i int, n *Node) error {
		m, err := c.backend.Counters(ctx, c.servers, n)
		n.SubtractAsked(m)
		list[i] = NodeCounters{Node: n.Name, Counters: m}
		if errors.Is(err, backend.ErrFollower) {
			list[i].Follower, err = true, nil
		}
		if err != nil {
			return fmt.Errorf("read the counters of %s: %w", n.Name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// CPU is the CPU time that the servers have used since their start, summed.
func (c *Cluster) CPU() (time.Duration, error) {
	var sum time.Duration
	for _, n := range slices.Concat(c.Nodes(), c.servers.Proxies) {
		d, err := n.Process.CPU()
		if err != nil {
			return 0, err
		}
		sum += d
	}
	return sum, nil
}

// stopNodes ends the processes of all servers.
func (c *Cluster) stopNodes(ctx context.Context) error {
	stop := func(_ int, n *Node) error {
		if n.Process == nil {
			return nil // it was never launched
		}
		return n.Process.Stop(ctx, 10*time.Second)
	}
	nodes := c.servers.All()
	var last []*Node
	if c.backend.Describe().StopLeaderLast && c.readyIn > 0 {
		if leader, err := c.leader(ctx); err == nil {
			last = []*Node{nodes[leader]}
			nodes = slices.Delete(nodes, leader, leader+1)
		}
	}
	return errors.Join(backend.SideBySide(nodes, stop), backend.SideBySide(last, stop))
}

// Stop ends the servers, politely for ten seconds or until ctx ends, and
// removes their data. The logs stay. A second call waits for the first.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopOnce.Do(func() {
		close(c.stopping) // a Restart under way gives up
		c.keeper.stop()
		for _, s := range c.turns {
			s.Lock()
			defer s.Unlock()
		}
		c.detachAll(ctx)
		c.stopErr = c.stopNodes(ctx)
		c.stopErr = errors.Join(c.stopErr, c.links.close(), c.place.close(ctx))
		if err := os.RemoveAll(c.servers.Dir); err != nil {
			c.stopErr = errors.Join(c.stopErr, fmt.Errorf("remove the data of %s: %w", c.spec.Backend, err))
		}
	})
	return c.stopErr
}
