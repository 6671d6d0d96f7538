package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/color"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
)

// Backend is etcd. Everything is asked over its HTTP pages. Its count of gRPC
// requests does not include them, but for those that ask for the leader.
type Backend struct{}

// Describe: a leader that stops hands over first, and waits for seconds for a
// successor if the others are about to stop too.
func (Backend) Describe() backend.Description {
	return backend.Description{
		Name:       "etcd",
		Topologies: backend.SingleOrQuorum(2, 2, backend.Link{Port: 1}), // clients, peers
		Packages:   backend.Packages{Build: "make servers"},             // it needs only Go
		Reserved: []string{
			"name", "data-dir", "wal-dir", "listen-client-urls", "advertise-client-urls", "listen-peer-urls",
			"initial-advertise-peer-urls", "initial-cluster", "initial-cluster-token", "initial-cluster-state",
			"listen-client-http-urls", "listen-metrics-urls", "log-outputs", "config-file",
		},
		Unsupported: map[string]string{
			scenario.AbilityClock: "etcd keeps leases by a monotonic clock, and Go ignores preloaded clocks",
			scenario.AbilityClose: "etcd has no command that closes its clients' connections; use reset",
			scenario.AbilityEvict: "etcd never evicts: when its space is used up it refuses writes; use full",
			scenario.AbilityFlush: "etcd has no command that forgets everything",
		},
		Consensus: true, MonotonicClock: true, StopLeaderLast: true,
		Color: color.NRGBA{0x00, 0x66, 0xA8, 0xff}, Glyph: backend.Box,
	}
}

// Durable: a grant is on the disks of a majority.
func (Backend) Durable(map[string]string) bool { return true }

// UnsupportedWith: a server that never flushes waits for no disk.
func (Backend) UnsupportedWith(settings map[string]string, ability string) string {
	_, set := settings["unsafe-no-fsync"]
	if ability == scenario.AbilitySlowDisk && set && !backend.Off(settings, "unsafe-no-fsync") {
		return "it never flushes to disk with --unsafe-no-fsync; leave that out"
	}
	return ""
}

// Limits: a lease lasts at least one and a half election timeouts.
func (Backend) Limits(settings map[string]string) impls.Limits {
	l := impls.DefaultLimits()
	l.ElectionTimeout = electionTimeout(settings["election-timeout"], l.ElectionTimeout)
	return l
}

// Election: each member waits for one to two timeouts at random, and once more
// where two stood for election at once.
func (Backend) Election(settings map[string]string) (within time.Duration, from string) {
	text, _, _ := strings.Cut(settings["election-timeout"], " ") // members may differ
	timeout := electionTimeout(text, 0)
	return 2 * 2 * timeout, fmt.Sprintf("twice up to two election timeouts of %s", timeout)
}

func (Backend) Find(s backend.Search) (backend.Binary, error) {
	path, err := s.Program("etcd")
	if err != nil {
		return backend.Binary{}, err
	}
	text, err := backend.VersionOf(path, "--version")
	if err != nil {
		return backend.Binary{}, s.Unusable(err)
	}
	return backend.Binary{Path: path, Product: "etcd", Version: backend.Between(text, "etcd Version: ", " \n")}, nil
}

func (Backend) Command(_ context.Context, c *backend.Cluster, n *backend.Node) (supervise.Command, error) {
	var members []string
	for _, m := range c.Nodes() {
		members = append(members, m.Name+"=http://"+c.Peer(m, 1))
	}
	client, peer := "http://"+n.Address, "http://"+backend.HostPort(n.Host, n.Ports[1])
	args := []string{
		"--name=" + n.Name, "--data-dir=" + n.Dir + "/data",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=http://" + c.Peer(n, 1),
		"--initial-cluster=" + strings.Join(members, ","),
		// The folder's name is unique, so members of different clusters
		// never take one another for their own.
		"--initial-cluster-token=" + c.Dir, "--initial-cluster-state=new",
	}
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		args = append(args, "--"+name+"="+c.Settings[name])
	}
	// The environment could change settings behind our back.
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "ETCD_") })
	return supervise.Command{Path: c.Binary.Path, Args: args, Env: env}, nil
}

// Ready checks /health, which makes a linearizable read, and whether the data
// folder in the server's command line is ours.
func (Backend) Ready(ctx context.Context, _ *backend.Cluster, n *backend.Node) error {
	data, err := n.Get(ctx, "/debug/vars", "")
	if err != nil {
		return err
	}
	var vars struct {
		Cmdline []string `json:"cmdline"`
	}
	if err := json.Unmarshal(data, &vars); err != nil {
		return fmt.Errorf("its /debug/vars: %w", err)
	}
	if !slices.Contains(vars.Cmdline, "--data-dir="+n.Dir+"/data") {
		return fmt.Errorf("%w: another etcd answers", backend.ErrPortTaken)
	}
	data, err = n.Get(ctx, "/health", "")
	if err != nil {
		return err
	}
	var health struct {
		Health, Reason string
	}
	if err := json.Unmarshal(data, &health); err != nil || health.Health != "true" {
		return fmt.Errorf("its health: %s", data)
	}
	return nil
}

func (Backend) Formed(context.Context, *backend.Cluster) error { return nil }

// Settings reads the server's log: the server logs its settings when it starts,
// and has no request that returns them.
func (Backend) Settings(_ context.Context, c *backend.Cluster, n *backend.Node) (map[string]string, error) {
	if n.Log == "" {
		return nil, errors.New("etcd has no request that returns its settings")
	}
	data, err := os.ReadFile(n.Log)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range bytes.Lines(data[min(n.LogFrom, int64(len(data))):]) {
		if !bytes.Contains(line, []byte(`"starting an etcd server"`)) {
			continue
		}
		var fields map[string]any
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&fields); err != nil {
			return nil, fmt.Errorf("its log's line of settings: %w", err)
		}
		for k, v := range fields {
			all[k] = fmt.Sprint(v)
		}
	}
	if len(all) == 0 {
		// Another log level, by the caller's setting: then only what was
		// set is known, from the command line.
		maps.Copy(all, c.Settings)
	}
	settings := backend.Pick(all, c.Settings, "heartbeat-interval", "election-timeout", "snapshot-count",
		"quota-backend-bytes", "max-request-bytes", "max-concurrent-streams", "pre-vote",
		"auto-compaction-mode", "auto-compaction-retention", "go-version", "max-cpu-set")
	for k, v := range c.Settings {
		if _, ok := settings[k]; !ok {
			settings["flag "+k] = v // taken from the command line, not read back
		}
	}
	return settings, nil
}

func (Backend) Facts(ctx context.Context, c *backend.Cluster, n *backend.Node) (backend.Facts, error) {
	f := backend.Facts{Product: "etcd", Limits: impls.DefaultLimits()}
	data, err := n.Get(ctx, "/version", "")
	if err != nil {
		return f, err
	}
	var version struct {
		Etcdserver string `json:"etcdserver"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return f, fmt.Errorf("its Version: %w", err)
	}
	f.Version = version.Etcdserver
	f.Limits.ElectionTimeout = electionTimeout(c.ReadBack["election-timeout"], f.Limits.ElectionTimeout)
	f.Durability = "fsync on (no --unsafe-no-fsync)"
	if off, set := c.Settings["unsafe-no-fsync"]; set && off != "false" {
		f.Durability = "fsync OFF (--unsafe-no-fsync)"
	}
	return f, nil
}

// electionTimeout reads the log's "1s" or a flag's "1000" (milliseconds).
func electionTimeout(s string, byDefault time.Duration) time.Duration {
	if d, err := time.ParseDuration(s); err == nil {
		return d
	}
	if ms, err := strconv.Atoi(s); err == nil {
		return time.Duration(ms) * time.Millisecond
	}
	return byDefault
}

// Counters are messages rather than calls: a watch or a keep-alive is a message
// on a stream that was opened long ago.
func (Backend) Counters(ctx context.Context, _ *backend.Cluster, n *backend.Node) (map[string]int64, error) {
	page, err := n.Get(ctx, "/metrics", "")
	if err != nil {
		return nil, err
	}
	counters, err := parseMessages(string(page))
	if err != nil {
		return nil, fmt.Errorf("its metrics: %w", err)
	}
	return counters, nil
}

// parseMessages reads the messages received, by method, from a page of metrics.
func parseMessages(page string) (map[string]int64, error) {
	const received, handled, version = "grpc_server_msg_received_total{", "grpc_server_handled_total{", "etcd_server_version{"
	messages, ended := map[string]int64{}, map[string]int64{}
	endsCount := false
	for line := range strings.Lines(page) {
		into := messages
		switch {
		case strings.HasPrefix(line, version):
			endsCount = countsEnds(backend.Between(line, `server_version="`, `"`))
			continue
		case strings.HasPrefix(line, received):
		case strings.HasPrefix(line, handled) && !strings.Contains(line, `grpc_type="unary"`):
			into = ended
		default:
			continue
		}
		// Health checks of gRPC are not requests of clients.
		if !strings.Contains(line, `grpc_service="etcdserverpb.`) && !strings.Contains(line, `grpc_service="v3`) {
			continue
		}
		method := backend.Between(line, `grpc_method="`, `"`)
		if method == "Status" || method == "MoveLeader" || method == "Alarm" {
			continue // only we ask for these
		}
		_, value, _ := strings.Cut(line, "} ")
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return nil, fmt.Errorf("unexpected %q", line)
		}
		into[method] += int64(v)
	}
	if len(messages) == 0 {
		return nil, fmt.Errorf("there is no %s...}", received)
	}
	if endsCount {
		for method, n := range ended {
			messages[method] -= n
		}
	}
	return messages, nil
}

// countsEnds: from 3.6 on the server counts the end of a stream as one more
// message received.
func countsEnds(version string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n != 2 {
		return true
	}
	return major > 3 || major == 3 && minor >= 6
}
