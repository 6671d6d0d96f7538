package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/supervise"
)

// etcd starts etcd. Everything is asked over its HTTP pages. Its count of gRPC
// requests does not include them, but for those that ask who leads.
type etcd struct{}

func (etcd) topologies() []topology { return singleOrQuorum() }
func (etcd) ports(string) int       { return 2 } // clients, peers

func (etcd) links(topology string) []linkPort {
	if topology == "single" {
		return nil
	}
	return []linkPort{{place: 1}}
}

// leavesLast: a leader that ends hands over first, and waits for seconds for one
// who takes over if the others are about to end too.
func (etcd) leavesLast() {}

func (etcd) reserved() []string {
	return []string{
		"name", "data-dir", "wal-dir", "listen-client-urls", "advertise-client-urls", "listen-peer-urls",
		"initial-advertise-peer-urls", "initial-cluster", "initial-cluster-token", "initial-cluster-state",
		"listen-client-http-urls", "listen-metrics-urls", "log-outputs", "config-file",
	}
}

func (etcd) find(s search) (Binary, error) {
	path, err := s.program("etcd")
	if err != nil {
		return Binary{}, err
	}
	text, err := versionOf(path, "--version")
	if err != nil {
		return Binary{}, s.unusable(err)
	}
	return Binary{Path: path, Product: "etcd", Version: between(text, "etcd Version: ", " \n")}, nil
}

func (etcd) command(_ context.Context, _ *supervise.Run, c *Cluster, n *Node) (supervise.Command, error) {
	var members []string
	for _, m := range c.Nodes() {
		members = append(members, m.Name+"=http://"+c.peer(m.ports[1]))
	}
	client, peer := "http://"+n.Address, "http://"+loopback(n.ports[1])
	args := []string{
		"--name=" + n.Name, "--data-dir=" + n.dir + "/data",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=http://" + c.peer(n.ports[1]),
		"--initial-cluster=" + strings.Join(members, ","),
		// The folder's name is unique, so members of different clusters
		// never take one another for their own.
		"--initial-cluster-token=" + c.dir, "--initial-cluster-state=new",
	}
	for _, name := range sortedKeys(c.spec.Settings) {
		args = append(args, "--"+name+"="+c.spec.Settings[name])
	}
	// The environment could change settings behind our back.
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "ETCD_") })
	return supervise.Command{Path: c.binary.Path, Args: args, Env: env}, nil
}

// ready asks /health, which makes a linearizable read, and whether the data
// folder in the server's command line is ours.
func (etcd) ready(ctx context.Context, _ *Cluster, n *Node) error {
	data, err := get(ctx, "http://"+n.Address+"/debug/vars", "")
	if err != nil {
		return err
	}
	var vars struct {
		Cmdline []string `json:"cmdline"`
	}
	if err := json.Unmarshal(data, &vars); err != nil {
		return fmt.Errorf("its /debug/vars: %w", err)
	}
	if !slices.Contains(vars.Cmdline, "--data-dir="+n.dir+"/data") {
		return fmt.Errorf("%w: another etcd answers", errPortTaken)
	}
	data, err = get(ctx, "http://"+n.Address+"/health", "")
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

func (etcd) formed(context.Context, *Cluster) error { return nil }

// settings are taken from the server's log: at its start it says what it runs
// with, and offers no other way to ask.
func (etcd) settings(_ context.Context, c *Cluster, n *Node) (map[string]string, error) {
	data, err := os.ReadFile(n.log)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range bytes.Lines(data[min(n.logFrom, int64(len(data))):]) {
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
		for k, v := range c.spec.Settings {
			all[k] = v
		}
	}
	settings := pick(all, c.spec.Settings, "heartbeat-interval", "election-timeout", "snapshot-count",
		"quota-backend-bytes", "max-request-bytes", "max-concurrent-streams", "pre-vote",
		"auto-compaction-mode", "auto-compaction-retention", "go-version", "max-cpu-set")
	for k, v := range c.spec.Settings {
		if _, ok := settings[k]; !ok {
			settings["flag "+k] = v // taken from the command line, not read back
		}
	}
	return settings, nil
}

func (etcd) facts(ctx context.Context, c *Cluster, n *Node) (facts, error) {
	f := facts{product: "etcd", limits: impls.DefaultLimits()}
	data, err := get(ctx, "http://"+n.Address+"/version", "")
	if err != nil {
		return f, err
	}
	var version struct {
		Etcdserver string `json:"etcdserver"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return f, fmt.Errorf("its version: %w", err)
	}
	f.version = version.Etcdserver
	f.limits.ElectionTimeout = etcdElection(c.settings["election-timeout"], f.limits.ElectionTimeout)
	f.durability = "fsync on (no --unsafe-no-fsync)"
	if off, set := c.spec.Settings["unsafe-no-fsync"]; set && off != "false" {
		f.durability = "fsync OFF (--unsafe-no-fsync)"
	}
	return f, nil
}

// etcdElection reads the log's "1s" or a flag's "1000" (milliseconds).
func etcdElection(s string, byDefault time.Duration) time.Duration {
	if d, err := time.ParseDuration(s); err == nil {
		return d
	}
	if ms, err := strconv.Atoi(s); err == nil {
		return time.Duration(ms) * time.Millisecond
	}
	return byDefault
}

// counters are messages rather than calls: a watch or a keep-alive is a message
// on a stream that was opened long ago.
func (etcd) counters(ctx context.Context, _ *Cluster, n *Node) (map[string]int64, error) {
	page, err := get(ctx, "http://"+n.Address+"/metrics", "")
	if err != nil {
		return nil, err
	}
	counters, err := etcdMessages(string(page))
	if err != nil {
		return nil, fmt.Errorf("its metrics: %w", err)
	}
	return counters, nil
}

// etcdMessages reads the messages received, by method, from a page of metrics.
func etcdMessages(page string) (map[string]int64, error) {
	const received, handled, version = "grpc_server_msg_received_total{", "grpc_server_handled_total{", "etcd_server_version{"
	messages, ended := map[string]int64{}, map[string]int64{}
	endsCount := false
	for line := range strings.Lines(page) {
		into := messages
		switch {
		case strings.HasPrefix(line, version):
			endsCount = etcdCountsEnds(between(line, `server_version="`, `"`))
			continue
		case strings.HasPrefix(line, received):
		case strings.HasPrefix(line, handled) && !strings.Contains(line, `grpc_type="unary"`):
			into = ended
		default:
			continue
		}
		// The health service of gRPC is nobody's request.
		if !strings.Contains(line, `grpc_service="etcdserverpb.`) && !strings.Contains(line, `grpc_service="v3`) {
			continue
		}
		method := between(line, `grpc_method="`, `"`)
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

// etcdCountsEnds: from 3.6 on the server counts the end of a stream as one more
// message received.
func etcdCountsEnds(version string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n != 2 {
		return true
	}
	return major > 3 || major == 3 && minor >= 6
}
