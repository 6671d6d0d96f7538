package run

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/scenario"
)

// sampler reads the servers' accounts, and the machine's, at both ends of a
// window. Reading takes its time, so it happens at the borders, never within.
type sampler struct {
	servers servers
	clock   history.Clock

	growth   []scenario.ServerSample
	from, to int64 // stamps of the two readings
	busy     *float64
	err      error
}

type account struct {
	counters    map[string]map[string]int64
	cpu         map[string]time.Duration
	at          int64 // stamp of the middle of the reading
	busy, total int64
	machine     bool
}

func (s *sampler) run(ctx context.Context, start, end int64) {
	if s.err = s.clock.SleepUntil(ctx, start); s.err != nil {
		return
	}
	before, err := s.read(ctx)
	if err != nil {
		s.err = err
		return
	}
	if s.err = s.clock.SleepUntil(ctx, end); s.err != nil {
		return
	}
	after, err := s.read(ctx)
	if err != nil {
		s.err = err
		return
	}
	s.from, s.to = before.at, after.at
	if before.machine && after.machine && after.total > before.total {
		share := float64(after.busy-before.busy) / float64(after.total-before.total)
		s.busy = &share
	}
	for node, now := range after.counters {
		grown := map[string]int64{}
		for name, v := range now {
			if d := v - before.counters[node][name]; d != 0 {
				grown[name] = d
			}
		}
		s.growth = append(s.growth, scenario.ServerSample{Node: node, CPUNS: int64(after.cpu[node] - before.cpu[node]), Counters: grown})
	}
}

func (s *sampler) read(ctx context.Context) (account, error) {
	a := account{counters: map[string]map[string]int64{}, cpu: map[string]time.Duration{}}
	a.busy, a.total, a.machine = cpuTimes()
	if s.servers.cluster == nil {
		return a, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	began := s.clock.Now()
	nodes, err := s.servers.cluster.Counters(ctx)
	if err != nil {
		return a, err
	}
	a.at = began + (s.clock.Now()-began)/2
	for _, n := range nodes {
		a.counters[n.Node] = n.Counters
	}
	for _, n := range s.servers.cluster.Nodes() {
		if a.cpu[n.Name], err = n.Process.CPU(); err != nil {
			return a, err
		}
	}
	return a, nil
}
