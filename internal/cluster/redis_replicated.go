package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/supervise"
)

// redisMaster is the sentinels' name for the master and its replicas.
const redisMaster = "lockbench"

// Directory lists the addresses of those who tell clients where the leader is:
// the sentinels of a replicated redis, or what stands before them if its links
// run through proxies. It is empty where clients find the leader by themselves.
func (c *Cluster) Directory() []string {
	var list []string
	for _, n := range c.watchers {
		list = append(list, n.Address)
	}
	return list
}

func (redis) watchers(topology string) int {
	if topology == "replicated" {
		return 3
	}
	return 0
}

// redisSentinel are the sentinels' settings: the production defaults of 30 s
// until a master counts as down and 180 s for a failover would make every
// experiment wait. The caller may set others, "sentinel " before their names.
func redisSentinel() map[string]string {
	return map[string]string{
		"sentinel quorum": "2", "sentinel down-after-milliseconds": "1000",
		"sentinel failover-timeout": "3000", "sentinel parallel-syncs": "1",
	}
}

// redisReplicated lays out a node of the topology: the settings that make it
// part of it stand in its own file, for the sentinels have it rewritten when
// roles change, and a node that is started again takes its role from there.
func redisReplicated(c *Cluster, n *Node) ([]string, error) {
	file := filepath.Join(n.dir, "redis.conf")
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return []string{file}, err
	}
	text := ""
	if first := c.Nodes()[0]; n.index != first.index {
		text = fmt.Sprintf("replicaof %s %d\n", c.peerHost(), first.ports[0])
	}
	if c.links != nil {
		// It is what the sentinels tell one another, and replicas.
		text += "replica-announce-ip " + linkHost + "\n"
	}
	// A replica joins at once, instead of after five seconds in which others
	// might join with it.
	text += "repl-diskless-sync-delay 0\n"
	return []string{file}, os.WriteFile(file, []byte(text), 0o600)
}

// redisWatcher lays out a sentinel, which is the same program.
func redisWatcher(c *Cluster, n *Node) (supervise.Command, error) {
	set := redisSentinel()
	for name, value := range c.spec.Settings {
		if strings.HasPrefix(name, "sentinel ") {
			set[name] = value
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "port %d\nbind %s\ndir %q\n", n.ports[0], c.peerHost(), n.dir)
	if c.links != nil {
		fmt.Fprintf(&text, "sentinel announce-ip %s\n", linkHost) // clients come to its front
	}
	fmt.Fprintf(&text, "sentinel monitor %s %s %d %s\n", redisMaster, c.peerHost(), c.Nodes()[0].ports[0], set["sentinel quorum"])
	for _, name := range sortedKeys(set) {
		if name != "sentinel quorum" {
			fmt.Fprintf(&text, "%s %s %s\n", name, redisMaster, set[name])
		}
	}
	file := filepath.Join(n.dir, "sentinel.conf")
	return supervise.Command{Path: c.binary.Path, Args: []string{file, "--sentinel"}}, os.WriteFile(file, []byte(text.String()), 0o600)
}

// redisWatcherSettings are what a sentinel runs with.
func redisWatcherSettings(ctx context.Context, n *Node) (map[string]string, error) {
	m, err := redisTable(ctx, n, "SENTINEL", "MASTER", redisMaster)
	if err != nil {
		return nil, err
	}
	settings := map[string]string{}
	for name := range redisSentinel() {
		settings[name] = m[0][strings.TrimPrefix(name, "sentinel ")]
	}
	return settings, nil
}

// formed waits for the replicas: a sentinel asks the master for them when it
// starts, and then only every ten seconds.
func (redis) formed(ctx context.Context, c *Cluster) error {
	if c.spec.Topology != "replicated" {
		return nil
	}
	return c.awaitAll(ctx, func() error { return redisLinked(ctx, c, 0) })
}

// whole: the replicas are linked to the master that the sentinels name, and
// each sentinel knows them all.
func (redis) whole(ctx context.Context, c *Cluster) error {
	if c.spec.Topology != "replicated" {
		return nil
	}
	master, err := redis{}.leader(ctx, c)
	if err != nil {
		return err
	}
	if err := redisLinked(ctx, c, master); err != nil {
		return err
	}
	return sideBySide(c.watchers, func(_ int, n *Node) error {
		if err := redisWatches(ctx, c, n, c.Nodes()[master].ports[0]); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		return nil
	})
}

// redisLinked: the master has all others as replicas, and they have it all.
func redisLinked(ctx context.Context, c *Cluster, master int) error {
	port := strconv.Itoa(c.Nodes()[master].ports[0])
	return c.each(func(i int, n *Node) error {
		want := map[string]string{"role": "slave", "master_port": port, "master_link_status": "up", "master_sync_in_progress": "0"}
		if i == master {
			want = map[string]string{"role": "master", "connected_slaves": strconv.Itoa(c.spec.Nodes - 1)}
		}
		info, err := redisInfo(ctx, n, "replication")
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		for _, name := range sortedKeys(want) {
			if info[name] != want[name] {
				return fmt.Errorf("%s has %s:%s, and not yet %s", n.Name, name, info[name], want[name])
			}
		}
		return nil
	})
}

// redisWatches: a sentinel sees the master, its replicas and the other
// sentinels, and nothing wrong with them.
func redisWatches(ctx context.Context, c *Cluster, n *Node, master int) error {
	m, err := redisTable(ctx, n, "SENTINEL", "MASTER", redisMaster)
	if err != nil {
		return err
	}
	want := map[string]string{
		"port": strconv.Itoa(master), "flags": "master",
		"num-other-sentinels": strconv.Itoa(len(c.watchers) - 1),
	}
	for _, name := range sortedKeys(want) {
		if m[0][name] != want[name] {
			return fmt.Errorf("of the master it has %s=%s, and not yet %s", name, m[0][name], want[name])
		}
	}
	for _, kind := range []struct {
		command, good string
		count         int
	}{{"REPLICAS", "slave", c.spec.Nodes - 1}, {"SENTINELS", "sentinel", len(c.watchers) - 1}} {
		list, err := redisTable(ctx, n, "SENTINEL", kind.command, redisMaster)
		if err != nil {
			return err
		}
		if len(list) != kind.count {
			return fmt.Errorf("it knows %d %s, and not yet %d", len(list), strings.ToLower(kind.command), kind.count)
		}
		for _, r := range list {
			// A replica that has told nothing of itself cannot be chosen. (How
			// its link is the replica told us; a sentinel asks it rarely.)
			if r["flags"] != kind.good || r["info-refresh"] == "0" {
				return fmt.Errorf("the %s at port %s has flags=%s info-refresh=%s", kind.good, r["port"], r["flags"], r["info-refresh"])
			}
		}
	}
	return nil
}

// leader is the master that most sentinels name, if it says so too.
func (redis) leader(ctx context.Context, c *Cluster) (int, error) {
	if c.spec.Topology != "replicated" {
		return 0, noLeaders(c)
	}
	answers, err := collect(c.watchers, func(n *Node) (string, error) {
		reply, err := redisAsk(ctx, n, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", redisMaster)
		return strings.Join(reply, ":"), err
	})
	if err != nil {
		return 0, err
	}
	for i, n := range c.Nodes() {
		votes := 0
		for _, a := range answers {
			if a.said == n.Address {
				votes++
			}
		}
		if votes <= len(c.watchers)/2 {
			continue
		}
		said, err := collect([]*Node{n}, func(n *Node) (map[string]string, error) { return redisInfo(ctx, n, "replication") })
		if err != nil {
			return 0, err
		}
		if role := said[0].said["role"]; role != "master" {
			return 0, fmt.Errorf("%w: the sentinels name %s, which is still a %s", ErrNoLeader, n.Name, role)
		}
		return i, nil
	}
	return 0, fmt.Errorf("%w: no majority of the sentinels names the same master", ErrNoLeader)
}

// moveLeader asks the sentinels one after another: any of them will do, but one
// that has just come to agree with the others may refuse.
func (redis) moveLeader(ctx context.Context, c *Cluster, _ int) error {
	if c.spec.Topology != "replicated" {
		return noLeaders(c)
	}
	var errs []error
	for _, n := range c.watchers {
		_, err := redisAsk(ctx, n, "SENTINEL", "FAILOVER", redisMaster)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", n.Name, err))
	}
	return errors.Join(errs...)
}

// redisTable asks for one or several lists of names and values.
func redisTable(ctx context.Context, n *Node, command ...string) ([]map[string]string, error) {
	reply, err := redisAsk(ctx, n, command...)
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
