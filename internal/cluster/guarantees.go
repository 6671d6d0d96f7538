package cluster

import (
	"github.com/lockbench/lockbench/internal/backend/all"
	"github.com/lockbench/lockbench/internal/scenario"
)

// Guarantees is what the servers of a backend guarantee for the locks that they
// granted, in a topology and with settings that differ from the production
// defaults.
func Guarantees(name, topology string, settings map[string]string) scenario.ServerFacts {
	b, err := all.Find(name)
	if err != nil {
		return scenario.ServerFacts{}
	}
	d := b.Describe()
	t, _ := d.Topology(topology)
	linked := len(t.Links) > 0
	return scenario.ServerFacts{
		Consensus:          d.Consensus,
		Durable:            b.Durable(settings),
		MonotonicClock:     d.MonotonicClock,
		Failover:           linked && !t.Leaderless && !d.Consensus,
		Leaderless:         t.Leaderless,
		KeysPerServer:      t.OwnKeys,
		Quorum:             t.Majority,
		ToleratesRejection: t.Majority && !linked, // clients ask a majority themselves
		SendsClientsAway:   d.IsolatedDisconnects,
	}
}
