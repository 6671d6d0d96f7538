package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/supervise"
)

// ErrServer: a server is there but did not start, or died; the message holds
// its last log lines.
var ErrServer = errors.New("server failed")

// ErrSpec: the specification asks for what does not exist or cannot be.
var ErrSpec = errors.New("no such cluster")

// Spec says which servers to start.
type Spec struct {
	Backend  string // redis, etcd, zookeeper, memcached, mysql
	Topology string // see Topologies; "" is single
	Nodes    int    // 0: as many as the topology has by default

	// Settings override the servers' defaults, in the backend's own words:
	// redis and mysqld names, etcd's and memcached's flags, zoo.cfg's keys and
	// "jvmFlags". An empty value of a memcached flag is the bare flag.
	Settings map[string]string

	Binary  string // of the server, instead of searching; see Find
	LogDir  string // made if need be; "": among the data, gone with it
	Clients int    // connections to allow for; the servers' default limit is never lowered

	// What faults need from the start, and costs nobody else anything:
	Links  bool // the links between servers run through proxies, for CutLinks; Linux only
	Clock  bool // the servers' wall clocks can be set, for SetClock
	Keeper bool // mysql replicated: a controller promotes the replica when the primary is silent
}

// Cluster is a running set of servers. Its methods are safe for concurrent
// use.
type Cluster struct {
	spec   Spec
	binary Binary
	driver driver
	dir    string
	run    *supervise.Run

	watchers []*Node // who tell where the leader is, in order; fixed

	mu    sync.Mutex
	slots []*slot // in node order; what is in them changes with Restart

	roles   sync.Mutex   // held while roles are given out; see Promote
	primary atomic.Int32 // who may be written to, where we decide that; set with roles held

	links  *links  // nil: the servers talk to one another without proxies; fixed
	keeper *keeper // nil: there is none; fixed

	settings map[string]string // read back
	facts    facts
	shim     shim    // preloaded into the servers, see Spec.Clock
	tracers  tracers // what makes disks slow, see SlowDisk
	readyIn  time.Duration

	stopOnce sync.Once
	stopping chan struct{}
	stopErr  error
}

// Node is one start of a server. Nothing of it changes once the server serves:
// a server that is started again is a new Node with the name and the address
// of the old one.
type Node struct {
	Name    string // redis, etcd-1
	Address string // host:port
	Process *supervise.Process

	index   int
	watcher bool  // it holds no data, but watches those that do
	ports   []int // the first one is the clients'
	dir     string
	log     string
	logFrom int64 // where this start's lines begin
	command []string
	probes  probeCount
	asked   asked
}

// NodeCounters are one server's counters since its start.
type NodeCounters struct {
	Node string
	// Follower: it applies what a leader sends it, or its equals do, which its own
	// counters do not tell from what clients send; so there are none. Figures that
	// span a change of leader mean nothing.
	Follower bool
	Counters map[string]int64
}

// startLimit is how long a cluster may take to serve. The slowest needs about
// four seconds on an idle machine.
const startLimit = 60 * time.Second

// Backends lists the backends that can be started, in the order of reports.
func Backends() []string { return []string{"redis", "etcd", "zookeeper", "memcached", "mysql"} }

// Topologies lists the topologies of a backend; none if there is no such
// backend.
func Topologies(backend string) []string {
	d, err := driverOf(backend)
	if err != nil {
		return nil
	}
	var names []string
	for _, t := range d.topologies() {
		names = append(names, t.name)
	}
	return names
}

// Size is how many servers of a backend a topology has where Spec.Nodes is left
// open, those that watch others not counted; 0 if there is no such backend or
// topology.
func Size(backend, topology string) int {
	d, err := driverOf(backend)
	if err != nil {
		return 0
	}
	for _, t := range d.topologies() {
		if t.name == topology {
			return t.nodes[0]
		}
	}
	return 0
}

// Start starts the servers side by side and returns when all serve requests.
// The error is ErrMissing (with the command that brings the server), ErrSpec,
// or ErrServer (with the last log lines); nothing is left running then.
func Start(ctx context.Context, run *supervise.Run, spec Spec) (*Cluster, error) {
	d, err := driverOf(spec.Backend)
	if err != nil {
		return nil, err
	}
	if spec, err = resolve(d, spec); err != nil {
		return nil, err
	}
	binary, err := Find(spec.Backend, spec.Binary)
	if err != nil {
		return nil, err
	}
	if spec.Topology == galera {
		if err := missingGalera(binary); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for attempt := 1; ; attempt++ {
		c, err := startOnce(ctx, run, d, spec, binary)
		if err == nil {
			return c, nil
		}
		// Somebody took a port between our look and the server's.
		if !errors.Is(err, errPortTaken) || attempt == 5 || ctx.Err() != nil {
			return nil, err
		}
	}
}

// resolve fills in defaults and refuses what cannot be.
func resolve(d driver, spec Spec) (Spec, error) {
	if spec.Topology == "" {
		spec.Topology = "single"
	}
	all := d.topologies()
	i := slices.IndexFunc(all, func(t topology) bool { return t.name == spec.Topology })
	if i < 0 {
		return spec, fmt.Errorf("%w: %s has no topology %q: choose from %v", ErrSpec, spec.Backend, spec.Topology, Topologies(spec.Backend))
	}
	if spec.Nodes == 0 {
		spec.Nodes = all[i].nodes[0]
	}
	if !slices.Contains(all[i].nodes, spec.Nodes) {
		return spec, fmt.Errorf("%w: a %s topology of %s has %v nodes, not %d", ErrSpec, spec.Topology, spec.Backend, all[i].nodes, spec.Nodes)
	}
	if _, ok := d.(kept); spec.Keeper && (!ok || spec.Topology != "replicated") {
		return spec, fmt.Errorf("%w: the nodes of a %s %s are in nobody's keeping: leave Keeper out", ErrSpec, spec.Backend, spec.Topology)
	}
	if spec.Links {
		if err := noLinks(d, spec.Topology); err != nil {
			return spec, fmt.Errorf("%w: run the links of a %s %s through proxies: %w", ErrSpec, spec.Backend, spec.Topology, err)
		}
	}
	for name := range spec.Settings {
		if slices.Contains(d.reserved(), name) {
			return spec, fmt.Errorf("%w: the setting %q of %s is lockbench's own (ports, folders): leave it out", ErrSpec, name, spec.Backend)
		}
	}
	return spec, nil
}

func startOnce(ctx context.Context, run *supervise.Run, d driver, spec Spec, binary Binary) (_ *Cluster, err error) {
	dir, err := os.MkdirTemp(run.Dir(), spec.Backend+"-")
	if err != nil {
		return nil, fmt.Errorf("start %s: make its data folder: %w", spec.Backend, err)
	}
	c := &Cluster{spec: spec, binary: binary, driver: d, dir: dir, run: run, stopping: make(chan struct{})}
	defer func() {
		if err != nil {
			// Also when ctx has ended: nothing may be left running.
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			err = errors.Join(err, c.Stop(stop))
		}
	}()
	if err := c.layOut(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Backend, err)
	}
	if spec.Links {
		if err := c.openLinks(); err != nil {
			return nil, fmt.Errorf("start %s: %w", spec.Backend, err)
		}
	}
	began := time.Now()
	up := func(_ int, n *Node) error { return c.bringUp(ctx, n) }
	if err := c.each(up); err != nil {
		return nil, err
	}
	if err := d.formed(ctx, c); err != nil {
		return nil, fmt.Errorf("start %s: first request: %w: %w", spec.Backend, ErrServer, err)
	}
	// Whoever watches the others looks at them at once, and then only now and
	// then: so they have to be there already.
	if err := sideBySide(c.watchers, up); err != nil {
		return nil, err
	}
	if err := c.awaitAll(ctx, func() error { return c.whole(ctx) }); err != nil {
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

// each calls f for every node, side by side, and joins what went wrong.
func (c *Cluster) each(f func(i int, n *Node) error) error { return sideBySide(c.Nodes(), f) }

func sideBySide(nodes []*Node, f func(i int, n *Node) error) error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { errs[i] = f(i, n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// readBack asks every node for its settings. Where nodes differ, their values
// stand side by side.
func (c *Cluster) readBack(ctx context.Context) error {
	c.settings = map[string]string{}
	nodes := c.Nodes()
	for i, n := range slices.Concat(nodes, c.watchers) {
		m, err := c.driver.settings(ctx, c, n)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		for k, v := range m {
			if have, ok := c.settings[k]; i > 0 && ok && have != v {
				v = have + " | " + v
			}
			c.settings[k] = v
		}
	}
	facts, err := c.driver.facts(ctx, c, nodes[0])
	c.facts = facts
	return err
}

// Addresses of the servers, in node order, as clients use them.
func (c *Cluster) Addresses() []string {
	var list []string
	for _, n := range c.Nodes() {
		list = append(list, n.Address)
	}
	return list
}

// Account to log in with; empty where the backend wants none.
func (c *Cluster) Account() impls.Account { return c.facts.account }

// Limits of the servers that decide which TTLs can be served.
func (c *Cluster) Limits() impls.Limits { return c.facts.limits }

// Nodes of the cluster, in order, as they were started last.
func (c *Cluster) Nodes() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*Node, len(c.slots))
	for i, s := range c.slots {
		list[i] = s.node
	}
	return list
}

// Counters reads every server's counters of requests, since its start. What
// the harness asks for itself is left out or taken off. The names are the
// backend's own:
//
//   - redis: the commands of commandstats ("set", "evalsha", "client|setinfo");
//     commands that a script calls are counted under their own names too, and
//     what replicas and sentinels send: they greet by "ping" and "publish";
//   - memcached: every number of "stats" ("cmd_get", "cmd_set", "delete_hits"),
//     and "cmd_delete", "cmd_incr", "cmd_decr" as sums of hits and misses. An
//     add or a cas counts as "cmd_set";
//   - etcd: messages received by method ("Txn", "LeaseKeepAlive", "Watch"): one
//     per unary call, one per message on a stream;
//   - mysql: "com_select", "com_update", ... of the server's status; a prepared
//     statement counts by its verb and as "com_stmt_prepare", "com_stmt_execute"
//     and "com_stmt_close" too;
//   - zookeeper: "packets_received", the pings of the clients' sessions
//     included (the driver sends one every third of a session's timeout).
func (c *Cluster) Counters(ctx context.Context) ([]NodeCounters, error) {
	list := make([]NodeCounters, c.spec.Nodes)
	err := c.each(func(i int, n *Node) error {
		m, err := c.driver.counters(ctx, c, n)
		n.asked.takeOff(m)
		list[i] = NodeCounters{Node: n.Name, Counters: m}
		if errors.Is(err, errFollower) {
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
	for _, n := range c.Nodes() {
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
	nodes := slices.Concat(c.Nodes(), c.watchers)
	var last []*Node
	if _, ok := c.driver.(leaving); ok && c.readyIn > 0 {
		if leader, err := c.leader(ctx); err == nil {
			last = []*Node{nodes[leader]}
			nodes = slices.Delete(nodes, leader, leader+1)
		}
	}
	return errors.Join(sideBySide(nodes, stop), sideBySide(last, stop))
}

// Stop ends the servers, politely for ten seconds or until ctx ends, and
// removes their data. The logs stay. A second call waits for the first.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopOnce.Do(func() {
		close(c.stopping) // a Restart under way gives up
		c.keeper.stop()
		for _, s := range c.slots {
			s.changing.Lock()
			defer s.changing.Unlock()
		}
		c.detachAll(ctx)
		c.stopErr = c.stopNodes(ctx)
		c.stopErr = errors.Join(c.stopErr, c.links.close())
		if err := os.RemoveAll(c.dir); err != nil {
			c.stopErr = errors.Join(c.stopErr, fmt.Errorf("remove the data of %s: %w", c.spec.Backend, err))
		}
	})
	return c.stopErr
}
