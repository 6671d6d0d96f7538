package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/container"
	"github.com/lockbench/lockbench/internal/supervise"
)

// clusterServers shows chaos the servers of a cluster.
type clusterServers struct{ *cluster.Cluster }

func (s clusterServers) Nodes() []chaos.NodeName {
	var list []chaos.NodeName
	for _, n := range s.Cluster.Nodes() {
		list = append(list, chaos.NodeName{Name: n.Name, Address: n.Address})
	}
	return list
}

func (s clusterServers) Leader(ctx context.Context) (int, error) {
	node, err := s.Cluster.Leader(ctx)
	if errors.Is(err, cluster.ErrUnsupported) {
		err = fmt.Errorf("%w: %w", chaos.ErrEquals, err)
	}
	return node, err
}

func (s clusterServers) Process(node int) chaos.Process {
	if nodes := s.Cluster.Nodes(); node >= 0 && node < len(nodes) && nodes[node].Process != nil {
		return nodes[node].Process
	}
	return nil // and not a nil process
}

func (s clusterServers) Move(ctx context.Context) (from, to int, err error) {
	return s.Failover(ctx)
}

// runJournal keeps a scenario's faults in the journal of the run.
type runJournal struct {
	run      *supervise.Run
	scenario string
}

func (j runJournal) Begin(id, what string, stopped ...chaos.Process) error {
	var list []*supervise.Process
	for _, p := range stopped {
		if p == nil {
			continue // a server that has none to be signalled
		}
		if _, is := p.(*container.Container); is {
			continue // a sweep finds it by its labels
		}
		ours, ok := p.(*supervise.Process)
		if !ok {
			return fmt.Errorf("note fault %s: pid %d was not started by this run", id, p.PID())
		}
		list = append(list, ours)
	}
	return j.run.NoteFault(j.name(id), what, list...)
}

func (j runJournal) End(id string) error { return j.run.FaultHealed(j.name(id)) }

// name is unique among the run's scenarios.
func (j runJournal) name(id string) string { return j.scenario + "/" + id }
