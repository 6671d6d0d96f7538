package cluster

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/supervise"
)

// memcached starts memcached.
type memcached struct{}

// topologies: the servers of a sharded one know nothing of one another; clients
// spread their keys over them.
func (memcached) topologies() []topology {
	return []topology{{"single", []int{1}}, {"sharded", []int{3}}}
}

func (memcached) ports(string) int { return 1 }

func (memcached) reserved() []string {
	return []string{"p", "port", "l", "listen", "U", "udp-port", "u", "user", "d", "daemon", "c", "conn-limit", "P", "pidfile"}
}

func (memcached) find(s search) (Binary, error) {
	path, err := s.program("memcached")
	if err != nil {
		return Binary{}, err
	}
	text, err := versionOf(path, "-V")
	if err != nil {
		return Binary{}, s.unusable(err)
	}
	return Binary{Path: path, Product: "memcached", Version: between(text, "memcached ", " \n")}, nil
}

func (memcached) command(_ context.Context, _ *supervise.Run, c *Cluster, n *Node) (supervise.Command, error) {
	args := []string{
		"-l", "127.0.0.1", "-p", strconv.Itoa(n.ports[0]), "-U", "0",
		"-c", strconv.Itoa(c.connections(1024)),
	}
	if root() {
		args = append(args, "-u", "root")
	}
	for _, name := range sortedKeys(c.spec.Settings) {
		value := c.spec.Settings[name]
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
	return supervise.Command{Path: c.binary.Path, Args: args}, nil
}

func (memcached) ready(ctx context.Context, _ *Cluster, n *Node) error {
	stats, err := memcachedStats(ctx, n, "stats")
	if err != nil {
		return err
	}
	if stats["pid"] != strconv.Itoa(n.Process.PID()) {
		return fmt.Errorf("%w: pid %s answers instead of %d", errPortTaken, stats["pid"], n.Process.PID())
	}
	return nil
}

func (memcached) formed(context.Context, *Cluster) error { return nil }

func (memcached) settings(ctx context.Context, c *Cluster, n *Node) (map[string]string, error) {
	all, err := memcachedStats(ctx, n, "stats settings")
	if err != nil {
		return nil, err
	}
	settings := pick(all, nil, "maxbytes", "maxconns", "num_threads", "evictions", "cas_enabled",
		"item_size_max", "growth_factor", "hash_algorithm", "lru_segmented", "reqs_per_event",
		"tcp_backlog", "idle_timeout")
	// The server names its settings otherwise than its flags.
	for name, value := range c.spec.Settings {
		settings["flag "+name] = value
	}
	return settings, nil
}

func (memcached) facts(ctx context.Context, _ *Cluster, n *Node) (facts, error) {
	stats, err := memcachedStats(ctx, n, "stats")
	return facts{
		product: "memcached", version: stats["version"], limits: impls.DefaultLimits(),
		durability: "none (memory only)",
	}, err
}

func (memcached) counters(ctx context.Context, _ *Cluster, n *Node) (map[string]int64, error) {
	stats, err := memcachedStats(ctx, n, "stats")
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

func memcachedStats(ctx context.Context, n *Node, command string) (map[string]string, error) {
	stats := map[string]string{}
	err := ask(ctx, n.Address, command+"\r\n", func(r *bufio.Reader) error {
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
