package cluster

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/lockbench/lockbench/internal/backend"
)

// layOut gives every server its name, folder, ports and log.
func (c *Cluster) layOut(ctx context.Context) error {
	logs := cmp.Or(c.spec.LogDir, c.servers.Dir)
	logs, err := filepath.Abs(logs)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return fmt.Errorf("make the folder of logs: %w", err)
	}
	t := c.servers.Topology
	roles := slices.Concat(slices.Repeat([]backend.Role{backend.RoleNode}, c.spec.Nodes), slices.Repeat([]backend.Role{backend.RoleWatcher}, t.Watchers))
	if t.Proxied {
		roles = append(roles, slices.Repeat([]backend.Role{backend.RoleProxy}, c.spec.Nodes)...)
	}
	ports, err := freePorts(len(roles) * t.Ports)
	if err != nil {
		return err
	}
	if err := c.place.open(ctx, c.servers.Dir, len(roles)); err != nil {
		return err
	}
	c.servers.ClientNet = c.place.clients()
	index := map[backend.Role]int{}
	for i, role := range roles {
		n := &Node{Name: c.spec.Backend, Host: c.place.host(i), Role: role, Index: index[role], Ports: ports[i*t.Ports : (i+1)*t.Ports]}
		index[role]++
		switch {
		case role != backend.RoleNode:
			n.Name = fmt.Sprintf("%s-%s-%d", c.spec.Backend, role, n.Index+1)
		case c.spec.Nodes > 1:
			n.Name = fmt.Sprintf("%s-%d", c.spec.Backend, n.Index+1)
		}
		n.Dir = filepath.Join(c.servers.Dir, fmt.Sprint(i+1))
		if err := os.Mkdir(n.Dir, 0o700); err != nil {
			return fmt.Errorf("make a data folder: %w", err)
		}
		n.Log = filepath.Join(logs, n.Name+".log")
		n.Address = backend.HostPort(n.Host, n.Ports[0])
		switch role {
		case backend.RoleWatcher:
			c.servers.Watchers = append(c.servers.Watchers, n)
		case backend.RoleProxy:
			c.servers.Proxies = append(c.servers.Proxies, n)
		default:
			c.servers.SetNode(n)
			c.turns = append(c.turns, newTurn())
		}
	}
	return nil
}
