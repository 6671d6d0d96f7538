package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
)

// sampler reads the servers' accounts, and the machine's, at both ends of a
// window. Reading takes its time, so it happens at the borders, never within.
type sampler struct {
	servers servers
	clock   history.Clock

	growth   []scenario.ServerSample
	from, to int64    // stamps of the two readings
	used     *float64 // share of the machine's CPU time
	others   *float64 // share that other processes than this run's used
	why      string   // the servers' growth is unknown
}

type account struct {
	nodes      map[string]nodeAccount
	at         int64 // stamp of the middle of the reading
	machine    machineCPU
	machineErr error
	err        error // why the servers gave none
}

// nodeAccount is one server's.
type nodeAccount struct {
	counters map[string]int64
	follower bool
	cpu      time.Duration
	pid      int
}

// run reads at both ends of the window; at its end earlier where the load, which
// ends with during, ended before.
func (s *sampler) run(ctx, during context.Context, start, end int64) {
	before, err := s.read(ctx, during, start)
	if err == nil {
		var after account
		if after, err = s.read(ctx, during, end); err == nil {
			s.compare(before, after)
			return
		}
	}
	s.why = unread(err)
}

func unread(err error) string { return fmt.Sprintf("the servers' counters could not be read: %v", err) }

// compare computes the growth between two readings. Servers that were killed or
// paused meanwhile, or have changed their roles, cannot be compared.
func (s *sampler) compare(before, after account) {
	if cmp.Or(before.machineErr, after.machineErr) == nil {
		s.used, s.others = after.machine.since(before.machine)
	}
	if err := cmp.Or(before.err, after.err); err != nil {
		s.why = unread(err)
		for node, now := range after.nodes {
			if was, ok := before.nodes[node]; ok && was.pid != now.pid {
				s.why = fmt.Sprintf("%s was started again meanwhile: %s", node, s.why)
				break
			}
		}
		return
	}
	s.from, s.to = before.at, after.at
	for _, node := range slices.Sorted(maps.Keys(after.nodes)) {
		was, now := before.nodes[node], after.nodes[node]
		switch {
		case was.pid != now.pid:
			s.why = fmt.Sprintf("%s was started again meanwhile, and its counters with it", node)
		case was.follower != now.follower:
			s.why = fmt.Sprintf("%s changed its part meanwhile, which its counters do not separate", node)
		}
		if s.why != "" {
			s.growth = nil
			return
		}
		grown := map[string]int64{}
		for name, v := range now.counters {
			if v != 0 { // one that did not grow shows that its requests are counted
				grown[name] = v - was.counters[name]
			}
		}
		s.growth = append(s.growth, scenario.ServerSample{Node: node, CPUNS: int64(now.cpu - was.cpu), Counters: grown})
	}
}

// read waits for a stamp, or for the load's end, and reads what there is; it
// returns an error if ctx ends first.
func (s *sampler) read(ctx, during context.Context, at int64) (account, error) {
	_ = s.clock.SleepUntil(during, at) // the load's end is one more time to read
	if err := ctx.Err(); err != nil {
		return account{}, err
	}
	a := account{nodes: map[string]nodeAccount{}}
	a.machine, a.machineErr = readMachineCPU()
	switch {
	case s.servers.cluster != nil:
		if a.err = s.ask(ctx, &a); s.servers.info.Environment == scenario.EnvDocker {
			a.machineErr = cmp.Or(a.machineErr, a.err) // what others used could be a container's
		}
	case s.servers.reference != nil:
		a.at = s.clock.Now()
		a.nodes["controller"] = nodeAccount{counters: s.servers.reference.Counters()}
	case s.servers.isExternal():
		a.err = errors.New("external servers may count other clients' requests too")
	}
	return a, nil
}

// ask reads the servers' accounts.
func (s *sampler) ask(ctx context.Context, a *account) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, n := range s.servers.cluster.Nodes() {
		a.nodes[n.Name] = nodeAccount{pid: n.Process.PID()}
	}
	began := s.clock.Now()
	list, err := s.servers.cluster.Counters(ctx)
	if err != nil {
		return err
	}
	a.at = began + (s.clock.Now()-began)/2
	counters := map[string]cluster.NodeCounters{}
	for _, n := range list {
		counters[n.Node] = n
	}
	for _, n := range s.servers.cluster.Nodes() {
		cpu, err := n.Process.CPU()
		if err != nil {
			return err
		}
		if _, child := n.Process.(*supervise.Process); !child { // a container is no descendant
			a.machine.own += cpu
		}
		c := counters[n.Name]
		a.nodes[n.Name] = nodeAccount{counters: c.Counters, follower: c.Follower, cpu: cpu, pid: n.Process.PID()}
	}
	return nil
}
