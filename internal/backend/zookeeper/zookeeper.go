package zookeeper

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image/color"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
)

// Backend is Apache ZooKeeper on a JVM with the JVM's own defaults.
type Backend struct{}

// Describe: the ports are those of clients, peers and elections. A learner tries
// a leader that does not listen yet again for some seconds; one that is reset
// begins a new election, of which the leader does not learn.
func (Backend) Describe() backend.Description {
	return backend.Description{
		Name:       "zookeeper",
		Topologies: backend.SingleOrQuorum(1, 3, backend.Link{Port: 1, Awaited: 2 * time.Second}, backend.Link{Port: 2, CallsBack: true}),
		Packages:   backend.Packages{Debian: "zookeeper default-jre-headless", Brew: "zookeeper"},
		Reserved:   []string{"dataDir", "dataLogDir", "clientPort", "clientPortAddress", "admin.enableServer", "4lw.commands.whitelist"},
		Unsupported: map[string]string{
			scenario.AbilityClose: "ZooKeeper has no command that closes its clients' connections; use reset",
			scenario.AbilityEvict: "ZooKeeper never evicts: what does not fit its memory ends it",
			scenario.AbilityFull:  "ZooKeeper has no limit at which it refuses: what does not fit its memory ends it",
			scenario.AbilityFlush: "ZooKeeper has no command that forgets everything",
			scenario.AbilityMove:  "ZooKeeper hands over the lead only when its leader ends; use pause, kill or cut",
		},
		Consensus: true, MonotonicClock: true, IsolatedDisconnects: true,
		Color: color.NRGBA{0x00, 0x8F, 0x68, 0xff}, Glyph: backend.Pyramid,
	}
}

// Durable: a grant is on the disks of a majority.
func (Backend) Durable(map[string]string) bool { return true }

// UnsupportedWith: a server that never flushes waits for no disk.
func (Backend) UnsupportedWith(settings map[string]string, ability string) string {
	if ability == scenario.AbilitySlowDisk && backend.Off(settings, "forceSync") {
		return "it never flushes to disk with forceSync=no; leave that out"
	}
	return ""
}

// Limits: sessions last 2 to 20 ticks.
func (Backend) Limits(settings map[string]string) impls.Limits {
	l := impls.DefaultLimits()
	if ms, err := strconv.Atoi(settings["tickTime"]); err == nil && ms > 0 {
		l.TickTime = time.Duration(ms) * time.Millisecond
	}
	return l
}

// electionRoom is room for votes and for the first followers to join; no setting
// of this order exists for it.
const electionRoom = 2 * time.Second

// Election: a follower leaves a silent leader after syncLimit ticks, and such a
// leader notices within half a tick more. An election takes rounds of some
// 200 ms.
func (Backend) Election(settings map[string]string) (within time.Duration, from string) {
	text, _, _ := strings.Cut(settings["tickTime"], " ")
	ms, _ := strconv.Atoi(text)
	tick := time.Duration(ms) * time.Millisecond
	text, _, _ = strings.Cut(settings["syncLimit"], " ")
	limit, err := strconv.Atoi(text)
	if err != nil || tick == 0 {
		return 0, ""
	}
	return time.Duration(limit)*tick + tick/2 + electionRoom, fmt.Sprintf("%d ticks and a half of %s, and %s", limit, tick, electionRoom)
}

func (Backend) Command(_ context.Context, c *backend.Cluster, n *backend.Node) (supervise.Command, error) {
	// tickTime, initLimit and syncLimit are those of the zoo.cfg that every
	// distribution ships; the code has no default for two of them.
	config := map[string]string{
		"tickTime": "2000", "initLimit": "10", "syncLimit": "5",
		"dataDir": filepath.Join(n.Dir, "data"), "clientPort": strconv.Itoa(n.Ports[0]), "clientPortAddress": n.Host,
		"maxClientCnxns": "0", "admin.enableServer": "false", "4lw.commands.whitelist": "*",
	}
	var flags []string
	for k, v := range c.Settings {
		if k == "jvmFlags" {
			flags = strings.Fields(v)
			continue
		}
		config[k] = v
	}
	if nodes := c.Nodes(); len(nodes) > 1 {
		for _, m := range nodes {
			host := c.PeerHost(m)
			if m.Index == n.Index {
				host = n.Host // where it listens itself
			}
			config[fmt.Sprintf("server.%d", m.Index+1)] = fmt.Sprintf("%s:%d:%d", host, m.Ports[1], m.Ports[2])
		}
	}
	var text strings.Builder
	for _, k := range slices.Sorted(maps.Keys(config)) {
		fmt.Fprintf(&text, "%s=%s\n", k, config[k])
	}
	file := filepath.Join(n.Dir, "zoo.cfg")
	if err := os.MkdirAll(config["dataDir"], 0o700); err != nil {
		return supervise.Command{}, err
	}
	if err := os.WriteFile(filepath.Join(config["dataDir"], "myid"), fmt.Appendln(nil, n.Index+1), 0o600); err != nil {
		return supervise.Command{}, err
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return supervise.Command{}, err
	}
	if err := writeLogging(n.Dir); err != nil {
		return supervise.Command{}, err
	}
	args := append(flags, "-cp", n.Dir+string(filepath.ListSeparator)+c.Binary.Extra["classpath"],
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", file)
	return supervise.Command{Path: c.Binary.Path, Args: args}, nil
}

// Ready: the node has a mode, so it serves (a node without a quorum reports that
// it does not), and its data folder is ours.
func (Backend) Ready(ctx context.Context, _ *backend.Cluster, n *backend.Node) error {
	conf, err := fourLetters(ctx, n, "conf")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(conf["dataDir"], filepath.Join(n.Dir, "data")) {
		if conf["dataDir"] == "" {
			return fmt.Errorf("it does not serve yet")
		}
		return fmt.Errorf("%w: another ZooKeeper answers", backend.ErrPortTaken)
	}
	stat, err := fourLetters(ctx, n, "srvr")
	if err != nil {
		return err
	}
	if stat["Mode"] == "" {
		return fmt.Errorf("it does not serve yet")
	}
	return nil
}

// Formed opens a session, which is a write that a quorum has to confirm.
func (Backend) Formed(ctx context.Context, c *backend.Cluster) error {
	conn, events, err := zk.Connect(c.Addresses(), 10*time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("open a session: %w", ctx.Err())
		case e := <-events:
			if e.State == zk.StateHasSession {
				_, _, err := conn.Exists("/")
				return err
			}
		}
	}
}

// silent keeps the driver's chatter out of our output; its errors are returned
// anyway.
type silent struct{}

func (silent) Printf(string, ...any) {}

// Leader returns the server that reports that it leads, and has a majority in
// step with it. Two may report that while one that was paused or cut off has not
// yet noticed: the later epoch is right.
func (Backend) Leader(ctx context.Context, c *backend.Cluster) (int, error) {
	type view struct {
		epoch   uint64
		leads   bool
		follows int // servers in step with it, as it sees them
	}
	answers, err := backend.Collect(c.Nodes(), func(n *backend.Node) (v view, err error) {
		stat, err := fourLetters(ctx, n, "srvr")
		if err != nil {
			return v, err
		}
		zxid, err := strconv.ParseUint(stat["Zxid"], 0, 64)
		if err != nil {
			return v, fmt.Errorf("it is in no quorum")
		}
		v.epoch = zxid >> 32 // above the count of its transactions
		if stat["Mode"] != "leader" {
			return v, nil
		}
		stat, err = fourLetters(ctx, n, "mntr")
		v.leads = stat["zk_server_state"] == "leader"
		v.follows, _ = strconv.Atoi(strings.TrimSuffix(stat["zk_synced_followers"], ".0"))
		return v, err
	})
	if err != nil {
		return 0, err
	}
	latest := slices.MaxFunc(answers, func(a, b backend.Answer[view]) int {
		// Of one epoch the leader comes last.
		return cmp.Or(cmp.Compare(a.Value.epoch, b.Value.epoch), cmp.Compare(a.Value.follows, b.Value.follows))
	})
	if !latest.Value.leads || 1+latest.Value.follows <= c.Size()/2 || len(answers) <= c.Size()/2 {
		return 0, fmt.Errorf("%w: of %d servers in a quorum none leads a majority", backend.ErrNoLeader, len(answers))
	}
	return latest.Node.Index, nil
}

func (Backend) Settings(ctx context.Context, c *backend.Cluster, n *backend.Node) (map[string]string, error) {
	conf, err := fourLetters(ctx, n, "conf")
	if err != nil {
		return nil, err
	}
	if conf["tickTime"] == "" {
		return nil, errors.New("not permitted by 4lw.commands.whitelist")
	}
	settings := backend.Pick(conf, c.Settings, "tickTime", "initLimit", "syncLimit", "maxClientCnxns",
		"minSessionTimeout", "maxSessionTimeout")
	env, err := fourLetters(ctx, n, "envi")
	if err != nil {
		return nil, err
	}
	for _, k := range []string{"java.version", "java.vendor", "os.memory.max"} {
		settings[k] = env[k]
	}
	for k, v := range c.Settings {
		if _, ok := settings[k]; !ok {
			settings["set "+k] = v // the server has no request that returns it
		}
	}
	return settings, nil
}

func (Backend) Facts(ctx context.Context, c *backend.Cluster, n *backend.Node) (backend.Facts, error) {
	f := backend.Facts{Product: "Apache ZooKeeper", Limits: impls.DefaultLimits()}
	stat, err := fourLetters(ctx, n, "srvr")
	if err != nil {
		return f, err
	}
	// "3.8.0-<commit>, built on ..."
	f.Version, _, _ = strings.Cut(stat["Zookeeper version"], "-")
	tick, _, _ := strings.Cut(c.ReadBack["tickTime"], " ")
	ms, err := strconv.Atoi(tick)
	if err != nil {
		return f, fmt.Errorf("its tickTime: %w", err)
	}
	f.Limits.TickTime = time.Duration(ms) * time.Millisecond
	force := "forceSync=yes (default)"
	if v, set := c.Settings["forceSync"]; set {
		force = "forceSync=" + v
	}
	if n.Process == nil {
		force = "forceSync not known" // of a server that lockbench did not start
	}
	f.Durability = force + " tickTime=" + tick
	return f, nil
}

func (Backend) Counters(ctx context.Context, _ *backend.Cluster, n *backend.Node) (map[string]int64, error) {
	stats, err := fourLetters(ctx, n, "mntr")
	if err != nil {
		return nil, err
	}
	v, err := strconv.ParseInt(stats["zk_packets_received"], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("its statistics: unexpected zk_packets_received %q", stats["zk_packets_received"])
	}
	// The server counts each of our four-letter words as one packet, before it
	// answers. (Its answers count as several packets sent, so that number
	// could not be cleared of ours.)
	return map[string]int64{"packets_received": v}, nil
}

// fourLetters asks by one of the server's four-letter words: lines of names
// and values, with a tab, an equals sign or a colon between.
func fourLetters(ctx context.Context, n *backend.Node, word string) (map[string]string, error) {
	answer := map[string]string{}
	err := n.Ask(ctx, word, func(r *bufio.Reader) error {
		n.Asked("packets_received", 1) // it was sent, so it counts whatever comes back
		data, err := io.ReadAll(r)
		if len(data) == 0 && err == nil {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSpace(line)
			if i := strings.IndexAny(line, "\t=:"); i > 0 {
				answer[line[:i]] = strings.TrimSpace(line[i+1:])
			}
		}
		return nil
	})
	return answer, err
}
