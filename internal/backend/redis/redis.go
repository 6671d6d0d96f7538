package redis

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"image/color"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
)

// Backend is redis-server, or valkey-server in its place.
type Backend struct{}

// Describe: the masters of a quorum are independent. A client asks a
// majority of them; there are five, as the author of redlock has it. Replicated
// is a master with two replicas, and three sentinels.
func (Backend) Describe() backend.Description {
	return backend.Description{
		Name: "redis",
		Topologies: []backend.Topology{
			{Name: "single", Nodes: []int{1}, Ports: 1},
			{Name: "quorum", Nodes: []int{5, 3}, Ports: 1, Leaderless: true, Majority: true},
			{Name: replicated, Nodes: []int{3}, Ports: 1, Watchers: 3, Links: []backend.Link{{Port: 0}}},
		},
		Packages: backend.Packages{Debian: "redis-server", Brew: "redis"},
		Reserved: []string{"port", "bind", "dir", "daemonize", "logfile", "pidfile"},
		Color:    color.NRGBA{0xC8, 0x46, 0x00, 0xff}, Glyph: backend.Circle,
	}
}

// Durable: with its defaults a server loses the last seconds.
func (Backend) Durable(settings map[string]string) bool {
	return settings["appendonly"] == "yes" && settings["appendfsync"] == "always"
}

// UnsupportedWith: by default no request waits for a disk.
func (Backend) UnsupportedWith(settings map[string]string, ability string) string {
	switch {
	case ability == scenario.AbilitySlowDisk && settings["appendonly"] != "yes":
		return `no request waits for a disk with appendonly=no; set servers: {redis: {appendonly: "yes", appendfsync: always}}`
	case ability == scenario.AbilitySlowDisk && settings["appendfsync"] == "no":
		return "it never flushes to disk with appendfsync=no; set it to always or everysec"
	case ability == scenario.AbilityEvict && settings["maxmemory-policy"] == "noeviction":
		return "with maxmemory-policy=noeviction a full server refuses new locks and forgets none; set another policy or none"
	}
	return ""
}

func (Backend) Find(s backend.Search) (backend.Binary, error) {
	path, err := s.Program("redis-server", "valkey-server")
	if err != nil {
		return backend.Binary{}, err
	}
	text, err := backend.VersionOf(path, "--version")
	if err != nil {
		return backend.Binary{}, s.Unusable(err)
	}
	b := backend.Binary{Path: path, Product: "redis", Version: backend.Between(text, "v=", " \n")}
	if strings.HasPrefix(strings.ToLower(text), "valkey") {
		b.Product = "Valkey"
	}
	return b, nil
}

func (Backend) Command(_ context.Context, c *backend.Cluster, n *backend.Node) (supervise.Command, error) {
	if n.Role == backend.RoleWatcher {
		return sentinelCommand(c, n)
	}
	// Without a file the server runs with the defaults built into it.
	var args []string
	if c.Topology.Name == replicated {
		var err error
		if args, err = replicaCommand(c, n); err != nil {
			return supervise.Command{}, err
		}
	}
	args = append(args,
		"--port", strconv.Itoa(n.Ports[0]), "--bind", n.Host, "--dir", n.Dir,
		// Its protected mode knows of one loopback address only; clients may come
		// from another. Only this machine can reach them.
		"--protected-mode", "no",
		"--daemonize", "no", "--maxclients", strconv.Itoa(c.Connections(10000)),
	)
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		if c.Topology.Name != replicated || !strings.HasPrefix(name, "sentinel ") {
			args = append(args, "--"+name, c.Settings[name])
		}
	}
	return supervise.Command{Path: c.Binary.Path, Args: args}, nil
}

func (Backend) Ready(ctx context.Context, _ *backend.Cluster, n *backend.Node) error {
	info, err := askInfo(ctx, n, "server")
	if err != nil {
		return err
	}
	if info["process_id"] != strconv.Itoa(n.PID) {
		return fmt.Errorf("%w: pid %s answers instead of %d", backend.ErrPortTaken, info["process_id"], n.PID)
	}
	reply, err := ask(ctx, n, "PING")
	if err != nil {
		return err
	}
	if len(reply) != 1 || reply[0] != "PONG" {
		return fmt.Errorf("it answers a PING by %q", reply)
	}
	return nil
}

func (Backend) Settings(ctx context.Context, c *backend.Cluster, n *backend.Node) (map[string]string, error) {
	if n.Role == backend.RoleWatcher {
		return sentinelReadBack(ctx, n)
	}
	reply, err := ask(ctx, n, "CONFIG", "GET", "*")
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for i := 0; i+1 < len(reply); i += 2 {
		all[reply[i]] = reply[i+1]
	}
	names := []string{
		"appendonly", "appendfsync", "save", "maxclients", "maxmemory", "maxmemory-policy",
		"io-threads", "tcp-backlog", "tcp-keepalive", "timeout", "hz", "databases",
	}
	if c.Topology.Name == replicated {
		names = append(names, "repl-diskless-sync", "repl-diskless-sync-delay", "repl-timeout",
			"repl-ping-replica-period", "min-replicas-to-write", "min-replicas-max-lag")
	}
	return backend.Pick(all, c.Settings, names...), nil
}

func (Backend) Facts(ctx context.Context, c *backend.Cluster, n *backend.Node) (backend.Facts, error) {
	info, err := askInfo(ctx, n, "server")
	if err != nil {
		return backend.Facts{}, err
	}
	f := backend.Facts{Product: "redis", Version: info["redis_version"], Limits: impls.DefaultLimits()}
	if v := info["valkey_version"]; v != "" {
		f.Product, f.Version = "Valkey", v
	}
	s := c.ReadBack
	f.Durability = "appendonly=" + s["appendonly"]
	if s["appendonly"] == "yes" {
		f.Durability += " appendfsync=" + s["appendfsync"]
	}
	save := s["save"]
	if save == "" {
		save = `""`
	}
	f.Durability += " save=" + save
	return f, nil
}

func (Backend) Counters(ctx context.Context, c *backend.Cluster, n *backend.Node) (map[string]int64, error) {
	if c.Topology.Name == replicated {
		info, err := askInfo(ctx, n, "replication")
		if err != nil || info["role"] == "slave" {
			return nil, cmp.Or(err, backend.ErrFollower)
		}
	}
	info, err := askInfo(ctx, n, "commandstats")
	if err != nil {
		return nil, err
	}
	counters := map[string]int64{}
	for name, value := range info {
		name, ok := strings.CutPrefix(name, "cmdstat_")
		// Only lockbench sends these.
		if !ok || name == "info" || name == "config|get" {
			continue
		}
		calls, err := strconv.ParseInt(backend.Between(value, "calls=", ","), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the statistics of %s: unexpected %q", name, value)
		}
		counters[name] = calls
	}
	return counters, nil
}

// askInfo asks for a section of INFO.
func askInfo(ctx context.Context, n *backend.Node, section string) (map[string]string, error) {
	reply, err := ask(ctx, n, "INFO", section)
	if err != nil {
		return nil, err
	}
	info := map[string]string{}
	for line := range strings.Lines(strings.Join(reply, "")) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[k] = v
		}
	}
	return info, nil
}

// ask sends a command and returns its answer, a flat list. A client
// library would send greetings of its own, which count as commands.
func ask(ctx context.Context, n *backend.Node, command ...string) (reply []string, err error) {
	err = n.Ask(ctx, login(n)+encode(command), func(r *bufio.Reader) error {
		if err := loggedIn(r, n); err != nil {
			return err
		}
		reply, err = readReply(r)
		return err
	})
	return reply, err
}

func readReply(r *bufio.Reader) ([]string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSpace(line)
	if line == "" {
		return nil, fmt.Errorf("an empty answer")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+', ':':
		return []string{rest}, nil
	case '-':
		return nil, fmt.Errorf("it answers %q", rest)
	case '$', '*':
		count, err := strconv.Atoi(rest)
		if err != nil || count > 64<<20 {
			return nil, fmt.Errorf("unexpected answer %q", line)
		}
		if count < 0 {
			return nil, nil
		}
		if kind == '$' {
			data := make([]byte, count+2)
			if _, err := io.ReadFull(r, data); err != nil {
				return nil, err
			}
			return []string{string(data[:count])}, nil
		}
		var list []string
		for range count {
			part, err := readReply(r)
			if err != nil {
				return nil, err
			}
			list = append(list, part...)
		}
		return list, nil
	}
	return nil, fmt.Errorf("unexpected answer %q", line)
}
