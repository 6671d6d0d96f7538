package cluster

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Bypasses lists the connections between servers that no proxy sees: those to a
// port that others call, which one of the servers itself has open at both ends.
func (c *Cluster) Bypasses() (list []string, err error) {
	table := ""
	for _, name := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile("/proc/self/net/" + name)
		if err != nil {
			return nil, err
		}
		table += string(data)
	}
	nodes := c.servers.All()
	var pids []int
	for _, n := range nodes {
		pids = append(pids, n.Process.PID())
	}
	for _, n := range c.Nodes() {
		for _, p := range c.servers.Topology.Links {
			for line := range strings.Lines(table) {
				// The dialler's line, of a connection that is established.
				f := strings.Fields(line)
				if len(f) < 10 || f[3] != "01" || !strings.HasSuffix(f[2], fmt.Sprintf("0100007F:%04X", n.Ports[p.Port])) {
					continue
				}
				if pid, err := holderOf("socket:["+f[9]+"]", pids); err == nil {
					list = append(list, fmt.Sprintf("%s to port %d of %s", nodes[slices.Index(pids, pid)].Name, n.Ports[p.Port], n.Name))
				}
			}
		}
	}
	return list, nil
}
