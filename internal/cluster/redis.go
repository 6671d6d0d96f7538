package cluster

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/supervise"
)

// redis starts redis-server, or valkey-server in its place.
type redis struct{}

// topologies: the masters of a quorum know nothing of one another. They are
// what a client that asks a majority of them wants, which is five as its author
// has it. Replicated is a master with two replicas, and three sentinels.
func (redis) topologies() []topology {
	return []topology{{"single", []int{1}}, {"quorum", []int{5, 3}}, {"replicated", []int{3}}}
}

func (redis) ports(string) int { return 1 }

func (redis) links(topology string) []linkPort {
	if topology != "replicated" {
		return nil
	}
	return []linkPort{{place: 0}}
}

func (redis) reserved() []string {
	return []string{"port", "bind", "dir", "daemonize", "logfile", "pidfile"}
}

func (redis) find(s search) (Binary, error) {
	path, err := s.program("redis-server", "valkey-server")
	if err != nil {
		return Binary{}, err
	}
	text, err := versionOf(path, "--version")
	if err != nil {
		return Binary{}, s.unusable(err)
	}
	b := Binary{Path: path, Product: "redis", Version: between(text, "v=", " \n")}
	if strings.HasPrefix(strings.ToLower(text), "valkey") {
		b.Product = "Valkey"
	}
	return b, nil
}

func (redis) command(_ context.Context, _ *supervise.Run, c *Cluster, n *Node) (supervise.Command, error) {
	if n.watcher {
		return redisWatcher(c, n)
	}
	// Without a file the server runs with the defaults built into it.
	var args []string
	if c.spec.Topology == "replicated" {
		var err error
		if args, err = redisReplicated(c, n); err != nil {
			return supervise.Command{}, err
		}
	}
	args = append(args,
		"--port", strconv.Itoa(n.ports[0]), "--bind", "127.0.0.1", "--dir", n.dir,
		// Its protected mode knows of one loopback address only; clients may come
		// from another. Nobody but this machine reaches any.
		"--protected-mode", "no",
		"--daemonize", "no", "--maxclients", strconv.Itoa(c.connections(10000)),
	)
	for _, name := range sortedKeys(c.spec.Settings) {
		if c.spec.Topology != "replicated" || !strings.HasPrefix(name, "sentinel ") {
			args = append(args, "--"+name, c.spec.Settings[name])
		}
	}
	return supervise.Command{Path: c.binary.Path, Args: args}, nil
}

func (redis) ready(ctx context.Context, _ *Cluster, n *Node) error {
	info, err := redisInfo(ctx, n, "server")
	if err != nil {
		return err
	}
	if info["process_id"] != strconv.Itoa(n.Process.PID()) {
		return fmt.Errorf("%w: pid %s answers instead of %d", errPortTaken, info["process_id"], n.Process.PID())
	}
	reply, err := redisAsk(ctx, n, "PING")
	if err != nil {
		return err
	}
	if len(reply) != 1 || reply[0] != "PONG" {
		return fmt.Errorf("it answers a PING by %q", reply)
	}
	return nil
}

func (redis) settings(ctx context.Context, c *Cluster, n *Node) (map[string]string, error) {
	if n.watcher {
		return redisWatcherSettings(ctx, n)
	}
	reply, err := redisAsk(ctx, n, "CONFIG", "GET", "*")
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
	if c.spec.Topology == "replicated" {
		names = append(names, "repl-diskless-sync", "repl-diskless-sync-delay", "repl-timeout",
			"repl-ping-replica-period", "min-replicas-to-write", "min-replicas-max-lag")
	}
	return pick(all, c.spec.Settings, names...), nil
}

func (redis) facts(ctx context.Context, c *Cluster, n *Node) (facts, error) {
	info, err := redisInfo(ctx, n, "server")
	if err != nil {
		return facts{}, err
	}
	f := facts{product: "redis", version: info["redis_version"], limits: impls.DefaultLimits()}
	if v := info["valkey_version"]; v != "" {
		f.product, f.version = "Valkey", v
	}
	s := c.settings
	f.durability = "appendonly=" + s["appendonly"]
	if s["appendonly"] == "yes" {
		f.durability += " appendfsync=" + s["appendfsync"]
	}
	save := s["save"]
	if save == "" {
		save = `""`
	}
	f.durability += " save=" + save
	return f, nil
}

func (redis) counters(ctx context.Context, c *Cluster, n *Node) (map[string]int64, error) {
	if c.spec.Topology == "replicated" {
		info, err := redisInfo(ctx, n, "replication")
		if err != nil || info["role"] == "slave" {
			return nil, cmp.Or(err, errFollower)
		}
	}
	info, err := redisInfo(ctx, n, "commandstats")
	if err != nil {
		return nil, err
	}
	counters := map[string]int64{}
	for name, value := range info {
		name, ok := strings.CutPrefix(name, "cmdstat_")
		// Only we ask for these.
		if !ok || name == "info" || name == "config|get" {
			continue
		}
		calls, err := strconv.ParseInt(between(value, "calls=", ","), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the statistics of %s: unexpected %q", name, value)
		}
		counters[name] = calls
	}
	return counters, nil
}

// redisInfo asks for a section of INFO.
func redisInfo(ctx context.Context, n *Node, section string) (map[string]string, error) {
	reply, err := redisAsk(ctx, n, "INFO", section)
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

// redisAsk sends a command and returns its answer, a flat list. A client
// library would send greetings of its own, which count as commands.
func redisAsk(ctx context.Context, n *Node, command ...string) (reply []string, err error) {
	err = ask(ctx, n.Address, redisRequest(command), func(r *bufio.Reader) error {
		reply, err = redisReply(r)
		return err
	})
	return reply, err
}

func redisReply(r *bufio.Reader) ([]string, error) {
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
			part, err := redisReply(r)
			if err != nil {
				return nil, err
			}
			list = append(list, part...)
		}
		return list, nil
	}
	return nil, fmt.Errorf("unexpected answer %q", line)
}
