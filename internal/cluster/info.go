package cluster

import (
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Info tells what runs: the nodes, and behind them those who watch them. The
// logs' paths are absolute.
func (c *Cluster) Info() scenario.ClusterInfo {
	info := scenario.ClusterInfo{
		Backend: c.spec.Backend, Topology: c.spec.Topology, Environment: "process",
		Product: c.facts.product, Version: c.facts.version, Binary: c.binary.Path,
		Durability: c.facts.durability, Settings: map[string]string{},
		ReadyMS: c.readyIn.Milliseconds(),
	}
	for k, v := range c.settings {
		info.Settings[k] = v
	}
	if c.preloaded() {
		info.Settings["wall clock"] = "through a preloaded library"
	}
	if c.links != nil {
		info.Settings["links between servers"] = "through proxies"
	}
	if c.keeper != nil {
		info.Settings["keeper poll"] = fmt.Sprintf("%dms x %d", keeperPoll.Milliseconds(), keeperTries)
	}
	for _, n := range slices.Concat(c.Nodes(), c.watchers) {
		node := scenario.NodeInfo{
			Name: n.Name, Address: n.Address, PID: n.Process.PID(),
			Command: slices.Clone(n.command), Log: n.log,
		}
		if n.watcher {
			node.Role = scenario.RoleSentinel
		}
		info.Nodes = append(info.Nodes, node)
	}
	return info
}
