package redis

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/supervise"
)

// masterName is the sentinels' name for the master and its replicas.
const masterName = "lockbench"

// replicated is the topology of a master, its replicas and three sentinels.
const replicated = "replicated"

// sentinelSettings are the sentinels' settings: the production defaults of 30 s
// until a master counts as down and 180 s for a failover would make every
// experiment wait. The caller may set others, "sentinel " before their names.
func sentinelSettings() map[string]string {
	return map[string]string{
		"sentinel quorum": "2", "sentinel down-after-milliseconds": "1000",
		"sentinel failover-timeout": "3000", "sentinel parallel-syncs": "1",
	}
}

// replicaCommand prepares a node of the topology. The settings of its role are in
// the node's own file, because the sentinels have it rewritten when roles change,
// and a node that is started again takes its role from there.
func replicaCommand(c *backend.Cluster, n *backend.Node) ([]string, error) {
	file := filepath.Join(n.Dir, "redis.conf")
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return []string{file}, err
	}
	text := ""
	if first := c.Nodes()[0]; n.Index != first.Index {
		text = fmt.Sprintf("replicaof %s %d\n", c.PeerHost(first), first.Ports[0])
	}
	if c.LinksProxied {
		// Sentinels and replicas exchange this address.
		text += "replica-announce-ip " + backend.LinkHost + "\n"
	}
	// A replica joins at once, instead of after five seconds in which others
	// might join with it.
	text += "repl-diskless-sync-delay 0\n"
	return []string{file}, os.WriteFile(file, []byte(text), 0o600)
}

// sentinelCommand lays out a sentinel, which is the same program.
func sentinelCommand(c *backend.Cluster, n *backend.Node) (supervise.Command, error) {
	set := sentinelSettings()
	for name, value := range c.Settings {
		if strings.HasPrefix(name, "sentinel ") {
			set[name] = value
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "port %d\nbind %s\ndir %q\n", n.Ports[0], c.PeerHost(n), n.Dir)
	if c.LinksProxied {
		fmt.Fprintf(&text, "sentinel announce-ip %s\n", backend.LinkHost) // clients come to its front
	}
	master := c.Nodes()[0]
	fmt.Fprintf(&text, "sentinel monitor %s %s %d %s\n", masterName, c.PeerHost(master), master.Ports[0], set["sentinel quorum"])
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if name != "sentinel quorum" {
			fmt.Fprintf(&text, "%s %s %s\n", name, masterName, set[name])
		}
	}
	file := filepath.Join(n.Dir, "sentinel.conf")
	return supervise.Command{Path: c.Binary.Path, Args: []string{file, "--sentinel"}}, os.WriteFile(file, []byte(text.String()), 0o600)
}

// sentinelReadBack are what a sentinel runs with.
func sentinelReadBack(ctx context.Context, n *backend.Node) (map[string]string, error) {
	m, err := askTable(ctx, n, "SENTINEL", "MASTER", masterName)
	if err != nil {
		return nil, err
	}
	settings := map[string]string{}
	for name := range sentinelSettings() {
		settings[name] = m[0][strings.TrimPrefix(name, "sentinel ")]
	}
	return settings, nil
}

// Formed waits for the replicas: a sentinel asks the master for them when it
// starts, and then only every ten seconds.
func (Backend) Formed(ctx context.Context, c *backend.Cluster) error {
	if c.Topology.Name != replicated {
		return nil
	}
	return c.AwaitAll(ctx, func() error { return linked(ctx, c, 0) })
}

// Whole: the replicas are linked to the master that the sentinels name, and
// each sentinel knows them all.
func (Backend) Whole(ctx context.Context, c *backend.Cluster) error {
	if c.Topology.Name != replicated {
		return nil
	}
	master, err := Backend{}.Leader(ctx, c)
	if err != nil {
		return err
	}
	if err := linked(ctx, c, master); err != nil {
		return err
	}
	return backend.SideBySide(c.Watchers, func(_ int, n *backend.Node) error {
		if err := watches(ctx, c, n, c.Nodes()[master].Ports[0]); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		return nil
	})
}

// linked: all others are replicas of the master, and have all its data.
func linked(ctx context.Context, c *backend.Cluster, master int) error {
	port := strconv.Itoa(c.Nodes()[master].Ports[0])
	return c.Each(func(i int, n *backend.Node) error {
		want := map[string]string{"role": "slave", "master_port": port, "master_link_status": "up", "master_sync_in_progress": "0"}
		if i == master {
			want = map[string]string{"role": "master", "connected_slaves": strconv.Itoa(c.Size() - 1)}
		}
		info, err := askInfo(ctx, n, "replication")
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if info[name] != want[name] {
				return fmt.Errorf("%s has %s:%s, and not yet %s", n.Name, name, info[name], want[name])
			}
		}
		return nil
	})
}

// watches: a sentinel reports the master, its replicas and the other
// sentinels, and no failure of them.
func watches(ctx context.Context, c *backend.Cluster, n *backend.Node, master int) error {
	m, err := askTable(ctx, n, "SENTINEL", "MASTER", masterName)
	if err != nil {
		return err
	}
	want := map[string]string{
		"port": strconv.Itoa(master), "flags": "master",
		"num-other-sentinels": strconv.Itoa(len(c.Watchers) - 1),
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if m[0][name] != want[name] {
			return fmt.Errorf("of the master it has %s=%s, and not yet %s", name, m[0][name], want[name])
		}
	}
	for _, kind := range []struct {
		command, good string
		count         int
	}{{"REPLICAS", "slave", c.Size() - 1}, {"SENTINELS", "sentinel", len(c.Watchers) - 1}} {
		list, err := askTable(ctx, n, "SENTINEL", kind.command, masterName)
		if err != nil {
			return err
		}
		if len(list) != kind.count {
			return fmt.Errorf("it knows %d %s, and not yet %d", len(list), strings.ToLower(kind.command), kind.count)
		}
		for _, r := range list {
			// A replica that a sentinel has no report from cannot be chosen. (The
			// state of its link comes from the replica; a sentinel asks it rarely.)
			if r["flags"] != kind.good || r["info-refresh"] == "0" {
				return fmt.Errorf("the %s at port %s has flags=%s info-refresh=%s", kind.good, r["port"], r["flags"], r["info-refresh"])
			}
		}
	}
	return nil
}

// Leader returns the master that most sentinels name, if it reports that role.
func (Backend) Leader(ctx context.Context, c *backend.Cluster) (int, error) {
	if c.Topology.Name != replicated {
		return 0, c.NoLeader()
	}
	answers, err := backend.Collect(c.Watchers, func(n *backend.Node) (string, error) {
		reply, err := ask(ctx, n, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)
		return strings.Join(reply, ":"), err
	})
	if err != nil {
		return 0, err
	}
	for i, n := range c.Nodes() {
		votes := 0
		for _, a := range answers {
			if a.Value == n.Address {
				votes++
			}
		}
		if votes <= len(c.Watchers)/2 {
			continue
		}
		reported, err := backend.Collect([]*backend.Node{n}, func(n *backend.Node) (map[string]string, error) { return askInfo(ctx, n, "replication") })
		if err != nil {
			return 0, err
		}
		if role := reported[0].Value["role"]; role != "master" {
			return 0, fmt.Errorf("%w: the sentinels name %s, which is still a %s", backend.ErrNoLeader, n.Name, role)
		}
		return i, nil
	}
	return 0, fmt.Errorf("%w: no majority of the sentinels names the same master", backend.ErrNoLeader)
}

// MoveLeader asks the sentinels one after another: any of them will do, but one
// that has just come to agree with the others may refuse.
func (Backend) MoveLeader(ctx context.Context, c *backend.Cluster, _ int) error {
	if c.Topology.Name != replicated {
		return c.NoLeader()
	}
	var errs []error
	for _, n := range c.Watchers {
		_, err := ask(ctx, n, "SENTINEL", "FAILOVER", masterName)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", n.Name, err))
	}
	return errors.Join(errs...)
}

// askTable asks for one or several lists of names and values.
func askTable(ctx context.Context, n *backend.Node, command ...string) ([]map[string]string, error) {
	reply, err := ask(ctx, n, command...)
	if err != nil {
		return nil, err
	}
	var table []map[string]string
	for pair := range slices.Chunk(reply, 2) {
		// The answer is one flat list here; each record begins with its name.
		if pair[0] == "name" {
			table = append(table, map[string]string{})
		}
		if len(pair) != 2 || len(table) == 0 {
			return nil, fmt.Errorf("%s is answered by %.200q", strings.Join(command, " "), reply)
		}
		table[len(table)-1][pair[0]] = pair[1]
	}
	return table, nil
}
