package memcached

import (
	"bufio"
	"context"
	"fmt"
	"image/color"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
)

// Backend is memcached.
type Backend struct{}

// Describe: a memcached never writes to disk, and the servers of a sharded
// topology are independent; clients spread their keys over them.
func (Backend) Describe() backend.Description {
	return backend.Description{
		Name: "memcached",
		Topologies: []backend.Topology{
			{Name: "single", Nodes: []int{1}, Ports: 1},
			{Name: "sharded", Nodes: []int{3}, Ports: 1, Leaderless: true, OwnKeys: true},
		},
		Packages: backend.Packages{Debian: "memcached", Brew: "memcached"},
		Reserved: []string{"p", "port", "l", "listen", "U", "udp-port", "u", "user", "d", "daemon", "c", "conn-limit", "P", "pidfile"},
		Unsupported: map[string]string{
			scenario.AbilitySlowDisk: "memcached writes nothing to disk",
			scenario.AbilityClose:    "memcached has no command that closes its clients' connections; use reset",
		},
		MonotonicClock: true,
		Color:          color.NRGBA{0xB8, 0x52, 0x91, 0xff}, Glyph: backend.Diamond,
	}
}

// Durable: everything is in memory.
func (Backend) Durable(map[string]string) bool { return false }

// UnsupportedWith: what a full server does depends on the flag M.
func (Backend) UnsupportedWith(settings map[string]string, ability string) string {
	_, rejects := settings["M"]
	if _, long := settings["disable-evictions"]; long {
		rejects = true
	}
	switch {
	case ability == scenario.AbilityEvict && rejects:
		return "with the flag M a full server refuses new locks and forgets none; leave that out"
	case ability == scenario.AbilityFull && !rejects:
		return `a full server evicts what it has and refuses nothing, unless it has the flag M; set servers: {memcached: {M: ""}}, or use evict`
	}
	return ""
}

func (Backend) Find(s backend.Search) (backend.Binary, error) {
	path, err := s.Program("memcached")
	if err != nil {
		return backend.Binary{}, err
	}
	text, err := backend.VersionOf(path, "-V")
	if err != nil {
		return backend.Binary{}, s.Unusable(err)
	}
	return backend.Binary{Path: path, Product: "memcached", Version: backend.Between(text, "memcached ", " \n")}, nil
}

func (Backend) Command(_ context.Context, c *backend.Cluster, n *backend.Node) (supervise.Command, error) {
	args := []string{
		"-l", n.Host, "-p", strconv.Itoa(n.Ports[0]), "-U", "0",
		"-c", strconv.Itoa(c.Connections(1024)),
	}
	if backend.Root() {
		args = append(args, "-u", "root")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		value := c.Settings[name]
		switch {
		case len(name) == 1 && value == "":
			args = append(args, "-"+name)
		case len(name) == 1:
			args = append(args, "-"+name, value)
		case value == "":
			args = append(args, "--"+name)
		default:
			args = append(args, "--"+name+"="+value)
		}
	}
	return supervise.Command{Path: c.Binary.Path, Args: args}, nil
}

func (Backend) Ready(ctx context.Context, _ *backend.Cluster, n *backend.Node) error {
	stats, err := askStats(ctx, n, "stats")
	if err != nil {
		return err
	}
	if stats["pid"] != strconv.Itoa(n.PID) {
		return fmt.Errorf("%w: pid %s answers instead of %d", backend.ErrPortTaken, stats["pid"], n.PID)
	}
	return nil
}

func (Backend) Formed(context.Context, *backend.Cluster) error { return nil }

func (Backend) Settings(ctx context.Context, c *backend.Cluster, n *backend.Node) (map[string]string, error) {
	all, err := askStats(ctx, n, "stats settings")
	if err != nil {
		return nil, err
	}
	settings := backend.Pick(all, nil, "maxbytes", "maxconns", "num_threads", "evictions", "cas_enabled",
		"item_size_max", "growth_factor", "hash_algorithm", "lru_segmented", "reqs_per_event",
		"tcp_backlog", "idle_timeout")
	// The server names its settings otherwise than its flags.
	for name, value := range c.Settings {
		settings["flag "+name] = value
	}
	return settings, nil
}

func (Backend) Facts(ctx context.Context, _ *backend.Cluster, n *backend.Node) (backend.Facts, error) {
	stats, err := askStats(ctx, n, "stats")
	return backend.Facts{
		Product: "memcached", Version: stats["version"], Limits: impls.DefaultLimits(),
		Durability: "none (memory only)",
	}, err
}

func (Backend) Counters(ctx context.Context, _ *backend.Cluster, n *backend.Node) (map[string]int64, error) {
	stats, err := askStats(ctx, n, "stats")
	if err != nil {
		return nil, err
	}
	counters := map[string]int64{}
	for name, value := range stats {
		if v, err := strconv.ParseInt(value, 10, 64); err == nil && name != "pid" && name != "time" {
			counters[name] = v
		}
	}
	for _, verb := range []string{"delete", "incr", "decr"} {
		counters["cmd_"+verb] = counters[verb+"_hits"] + counters[verb+"_misses"]
	}
	return counters, nil
}

func askStats(ctx context.Context, n *backend.Node, command string) (map[string]string, error) {
	stats := map[string]string{}
	err := n.Ask(ctx, command+"\r\n", func(r *bufio.Reader) error {
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return err
			}
			line = strings.TrimSpace(line)
			if line == "END" {
				return nil
			}
			rest, ok := strings.CutPrefix(line, "STAT ")
			if !ok {
				return fmt.Errorf("it answers %q by %q", command, line)
			}
			name, value, _ := strings.Cut(rest, " ")
			stats[name] = value
		}
	})
	return stats, err
}
