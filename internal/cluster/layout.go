package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// layOut gives every node, and every watcher, its name, folder, ports and log.
func (c *Cluster) layOut() error {
	logs := c.spec.LogDir
	if logs == "" {
		logs = c.dir
	}
	logs, err := filepath.Abs(logs)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return fmt.Errorf("make the folder of logs: %w", err)
	}
	var watchers int
	if d, ok := c.driver.(watched); ok {
		watchers = d.watchers(c.spec.Topology)
	}
	each := c.driver.ports(c.spec.Topology)
	ports, err := freePorts((c.spec.Nodes + watchers) * each)
	if err != nil {
		return err
	}
	for i := range c.spec.Nodes + watchers {
		n := &Node{Name: c.spec.Backend, index: i, ports: ports[i*each : (i+1)*each]}
		if c.spec.Nodes > 1 {
			n.Name = fmt.Sprintf("%s-%d", c.spec.Backend, i+1)
		}
		if i >= c.spec.Nodes {
			n.index, n.watcher = i-c.spec.Nodes, true
			n.Name = fmt.Sprintf("%s-sentinel-%d", c.spec.Backend, n.index+1)
		}
		n.dir = filepath.Join(c.dir, fmt.Sprint(i+1))
		if err := os.Mkdir(n.dir, 0o700); err != nil {
			return fmt.Errorf("make a data folder: %w", err)
		}
		n.log = filepath.Join(logs, n.Name+".log")
		n.Address = loopback(n.ports[0])
		if n.watcher {
			c.watchers = append(c.watchers, n)
		} else {
			c.slots = append(c.slots, &slot{node: n})
		}
	}
	return nil
}
