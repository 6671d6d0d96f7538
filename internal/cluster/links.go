package cluster

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/supervise"
)

// links are the ways between a cluster's servers, each with a proxy of its own.
type links struct {
	gates  []net.Listener
	fronts []*front
	ways   map[way]*faultnet.Proxy // fixed once they are open
	serves sync.WaitGroup

	mu     sync.Mutex
	pids   map[string]int               // of the processes that may connect, by name
	cuts   map[string][]*faultnet.Proxy // that have a rule, by its id
	closed bool
}

// Why no server is found at the other end of a connection.
var (
	errHungUp   = errors.New("it is closed at the other end")
	errStranger = errors.New("no server of this cluster")
)

// way is a way from one server to a port of another one.
type way struct {
	from, to string
	port     int
}

// noLinks is why the servers of a topology have no links that could be cut, or
// nil.
func noLinks(t backend.Topology) error {
	if len(t.Links) == 0 {
		return fmt.Errorf("%w: the servers of this topology (%s) do not talk to one another", ErrUnsupported, t.Name)
	}
	if runtime.GOOS != "linux" {
		return fmt.Errorf("%w: only Linux shows which server a connection comes from", ErrUnsupported)
	}
	return nil
}

// openLinks begins to listen in the servers' place, before any of them starts.
func (c *Cluster) openLinks() error {
	l := &links{ways: map[way]*faultnet.Proxy{}, pids: map[string]int{}, cuts: map[string][]*faultnet.Proxy{}}
	c.links = l
	var callers []string
	if c.spec.Keeper {
		callers, l.pids[keeperName] = []string{keeperName}, os.Getpid()
	}
	for _, n := range c.servers.All() {
		callers = append(callers, n.Name)
	}
	for _, n := range c.Nodes() {
		for _, p := range c.servers.Topology.Links {
			if err := l.open(n.Name, n.Ports[p.Port], p, callers); err != nil {
				return err
			}
		}
	}
	for _, n := range c.servers.Watchers {
		f, err := openFront(n.Address, c.servers.Peer(n, 0))
		if err != nil {
			return fmt.Errorf("%w: listen in place of %s: %w", backend.ErrPortTaken, n.Name, err)
		}
		l.fronts = append(l.fronts, f)
	}
	return nil
}

// open makes the ways to one port.
func (l *links) open(to string, port int, p backend.Link, callers []string) error {
	gate, err := net.Listen("tcp", net.JoinHostPort(backend.LinkHost, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("%w: listen in place of %s: %w", backend.ErrPortTaken, to, err)
	}
	l.gates = append(l.gates, gate)
	for _, from := range callers {
		proxy := faultnet.NewProxy(backend.HostPort(backend.ClientHost, port))
		proxy.Patience, proxy.From = p.Awaited, p.From
		l.ways[way{from, to, port}] = proxy
	}
	l.serves.Go(func() {
		accept(gate, func(conn net.Conn) { l.serves.Go(func() { l.lead(conn, to, port, p.CallsBack) }) })
	})
	return nil
}

// accept takes connections until the listener is closed.
func accept(listener net.Listener, take func(net.Conn)) {
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			take(conn)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			time.Sleep(10 * time.Millisecond) // out of descriptors, for now
		}
	}
}

// lead forwards a connection through the proxy of its pair of servers.
func (l *links) lead(conn net.Conn, to string, port int, callsBack bool) {
	from, err := l.caller(conn)
	proxy := l.ways[way{from, to, port}]
	if errors.Is(err, errHungUp) {
		proxy = l.whichever(to, port)
	}
	if proxy == nil {
		conn.Close() // of an unknown process, or a rule may apply to it
		return
	}
	if callsBack {
		conn = &readdressed{Conn: conn, readdresser: readdresser{from: backend.ClientHost, to: backend.LinkHost}}
	}
	proxy.Serve(conn)
}

// whichever returns any of the ways to a port, for a server that sent its message
// and closed the connection before it could be identified. A ZooKeeper server does
// this when it asks to be called back. Without rules the ways are all alike; nil if
// one of them has a rule.
func (l *links) whichever(to string, port int) (found *faultnet.Proxy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w, proxy := range l.ways {
		if w.to != to || w.port != port {
			continue
		}
		for _, ruled := range l.cuts {
			if slices.Contains(ruled, proxy) {
				return nil
			}
		}
		found = proxy
	}
	return found
}

// caller finds the server that has connected. A server may connect before its
// process is recorded, so it tries several times.
func (l *links) caller(conn net.Conn) (string, error) {
	for range 50 {
		l.mu.Lock()
		callers := make(map[int]string, len(l.pids))
		for name, pid := range l.pids {
			callers[pid] = name
		}
		closed := l.closed
		l.mu.Unlock()
		if closed {
			break
		}
		pid, err := dialledBy(conn, slices.Collect(maps.Keys(callers)))
		if errors.Is(err, errStranger) {
			// A server such as PostgreSQL calls by a process that it has started.
			for root, name := range maps.Clone(callers) {
				for _, child := range supervise.Descendants(root) {
					callers[child] = name
				}
			}
			pid, err = dialledBy(conn, slices.Collect(maps.Keys(callers)))
		}
		if err == nil {
			return callers[pid], nil
		}
		if errors.Is(err, errHungUp) {
			return "", err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return "", errStranger
}

// started notes the process of a server that may call others.
func (l *links) started(n *Node) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pids[n.Name] = n.Process.PID()
}

// close ends all ways, and returns when nothing passes any more.
func (l *links) close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	var errs []error
	for _, gate := range l.gates {
		errs = append(errs, gate.Close())
	}
	for _, f := range l.fronts {
		errs = append(errs, f.close())
	}
	for _, proxy := range l.ways {
		errs = append(errs, proxy.Close())
	}
	l.serves.Wait()
	return errors.Join(errs...)
}
