package cluster

import (
	"fmt"
	"maps"
	"slices"

	"github.com/lockbench/lockbench/internal/scenario"
)

// environment is where servers of this specification run.
func (s Spec) environment() string {
	if s.Containers != nil {
		return scenario.EnvDocker
	}
	return scenario.EnvProcess
}

// Info lists what runs: the nodes, and behind them servers with other roles. The
// logs' paths are absolute.
func (c *Cluster) Info() scenario.ClusterInfo {
	info := scenario.ClusterInfo{
		Backend: c.spec.Backend, Topology: c.spec.Topology, Environment: c.spec.environment(),
		Product: c.facts.Product, Version: c.facts.Version, Binary: c.servers.Binary.Path,
		Durability: c.facts.Durability, Settings: map[string]string{},
		ReadyMS: c.readyIn.Milliseconds(),
	}
	maps.Copy(info.Settings, c.servers.ReadBack)
	if c.preloaded() {
		info.Settings["wall clock"] = "through a preloaded library"
	}
	if c.links != nil {
		info.Settings["links between servers"] = "through proxies"
	}
	if c.keeper != nil {
		info.Settings["keeper poll"] = fmt.Sprintf("%dms x %d", keeperPoll.Milliseconds(), keeperTries)
	}
	for _, n := range c.servers.All() {
		info.Nodes = append(info.Nodes, scenario.NodeInfo{
			Name: n.Name, Role: string(n.Role), Address: n.Address, PID: n.Process.PID(),
			Command: slices.Clone(n.Command), Log: n.Log,
		})
	}
	return info
}
