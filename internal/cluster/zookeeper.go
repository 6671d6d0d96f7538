package cluster

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/supervise"
)

// zookeeper starts Apache ZooKeeper on a JVM with the JVM's own defaults.
type zookeeper struct{}

func (zookeeper) topologies() []topology { return singleOrQuorum() }

func (zookeeper) ports(topology string) int {
	if topology == "single" {
		return 1
	}
	return 3 // clients, peers, elections
}

func (zookeeper) links(topology string) []linkPort {
	if topology == "single" {
		return nil
	}
	// A learner tries a leader that does not listen yet again for some seconds;
	// one that is reset begins a new election, which the leader does not hear of.
	return []linkPort{{place: 1, awaited: 2 * time.Second}, {place: 2, callsBack: true}}
}

func (zookeeper) reserved() []string {
	return []string{"dataDir", "dataLogDir", "clientPort", "clientPortAddress", "admin.enableServer", "4lw.commands.whitelist"}
}

func (zookeeper) command(_ context.Context, _ *supervise.Run, c *Cluster, n *Node) (supervise.Command, error) {
	// tickTime, initLimit and syncLimit are those of the zoo.cfg that every
	// distribution ships; the code has no default for two of them.
	config := map[string]string{
		"tickTime": "2000", "initLimit": "10", "syncLimit": "5",
		"dataDir": filepath.Join(n.dir, "data"), "clientPort": strconv.Itoa(n.ports[0]), "clientPortAddress": "127.0.0.1",
		"maxClientCnxns": "0", "admin.enableServer": "false", "4lw.commands.whitelist": "*",
	}
	var flags []string
	for k, v := range c.spec.Settings {
		if k == "jvmFlags" {
			flags = strings.Fields(v)
			continue
		}
		config[k] = v
	}
	if nodes := c.Nodes(); len(nodes) > 1 {
		for _, m := range nodes {
			host := c.peerHost()
			if m.index == n.index {
				host = "127.0.0.1" // where it listens itself
			}
			config[fmt.Sprintf("server.%d", m.index+1)] = fmt.Sprintf("%s:%d:%d", host, m.ports[1], m.ports[2])
		}
	}
	var text strings.Builder
	for _, k := range sortedKeys(config) {
		fmt.Fprintf(&text, "%s=%s\n", k, config[k])
	}
	file := filepath.Join(n.dir, "zoo.cfg")
	if err := os.MkdirAll(config["dataDir"], 0o700); err != nil {
		return supervise.Command{}, err
	}
	if err := os.WriteFile(filepath.Join(config["dataDir"], "myid"), fmt.Appendln(nil, n.index+1), 0o600); err != nil {
		return supervise.Command{}, err
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return supervise.Command{}, err
	}
	if err := writeLogging(n.dir); err != nil {
		return supervise.Command{}, err
	}
	args := append(flags, "-cp", n.dir+string(filepath.ListSeparator)+c.binary.Extra["classpath"],
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", file)
	return supervise.Command{Path: c.binary.Path, Args: args}, nil
}

// ready: the node has a mode, so it serves (a node without a quorum says that
// it does not), and its data folder is ours.
func (zookeeper) ready(ctx context.Context, _ *Cluster, n *Node) error {
	conf, err := fourLetters(ctx, n, "conf")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(conf["dataDir"], filepath.Join(n.dir, "data")) {
		if conf["dataDir"] == "" {
			return fmt.Errorf("it does not serve yet")
		}
		return fmt.Errorf("%w: another ZooKeeper answers", errPortTaken)
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

// formed opens a session, which is a write that a quorum has to confirm.
func (zookeeper) formed(ctx context.Context, c *Cluster) error {
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

// leader is the one that says it leads, and has a majority in step with it. Two
// may say so while the one that was paused or cut off has not yet noticed: the
// later epoch is right.
func (zookeeper) leader(ctx context.Context, c *Cluster) (int, error) {
	type view struct {
		epoch   uint64
		leads   bool
		follows int // servers in step with it, as it sees them
	}
	answers, err := collect(c.Nodes(), func(n *Node) (v view, err error) {
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
	latest := slices.MaxFunc(answers, func(a, b answer[view]) int {
		// Of one epoch the leader comes last.
		return cmp.Or(cmp.Compare(a.said.epoch, b.said.epoch), cmp.Compare(a.said.follows, b.said.follows))
	})
	if !latest.said.leads || 1+latest.said.follows <= c.spec.Nodes/2 || len(answers) <= c.spec.Nodes/2 {
		return 0, fmt.Errorf("%w: of %d servers in a quorum none leads a majority", ErrNoLeader, len(answers))
	}
	return latest.node.index, nil
}

func (zookeeper) settings(ctx context.Context, c *Cluster, n *Node) (map[string]string, error) {
	conf, err := fourLetters(ctx, n, "conf")
	if err != nil {
		return nil, err
	}
	settings := pick(conf, c.spec.Settings, "tickTime", "initLimit", "syncLimit", "maxClientCnxns",
		"minSessionTimeout", "maxSessionTimeout")
	env, err := fourLetters(ctx, n, "envi")
	if err != nil {
		return nil, err
	}
	for _, k := range []string{"java.version", "java.vendor", "os.memory.max"} {
		settings[k] = env[k]
	}
	for k, v := range c.spec.Settings {
		if _, ok := settings[k]; !ok {
			settings["set "+k] = v // the server does not tell it back
		}
	}
	return settings, nil
}

func (zookeeper) facts(ctx context.Context, c *Cluster, n *Node) (facts, error) {
	f := facts{product: "Apache ZooKeeper", limits: impls.DefaultLimits()}
	stat, err := fourLetters(ctx, n, "srvr")
	if err != nil {
		return f, err
	}
	// "3.8.0-<commit>, built on ..."
	f.version, _, _ = strings.Cut(stat["Zookeeper version"], "-")
	tick, _, _ := strings.Cut(c.settings["tickTime"], " ")
	ms, err := strconv.Atoi(tick)
	if err != nil {
		return f, fmt.Errorf("its tickTime: %w", err)
	}
	f.limits.TickTime = time.Duration(ms) * time.Millisecond
	force := "forceSync=yes (default)"
	if v, set := c.spec.Settings["forceSync"]; set {
		force = "forceSync=" + v
	}
	f.durability = force + " tickTime=" + tick
	return f, nil
}

func (zookeeper) counters(ctx context.Context, _ *Cluster, n *Node) (map[string]int64, error) {
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
	return map[string]int64{"packets_received": v - n.probes.Load()}, nil
}

// fourLetters asks by one of the server's four-letter words: lines of names
// and values, with a tab, an equals sign or a colon between.
func fourLetters(ctx context.Context, n *Node, word string) (map[string]string, error) {
	answer := map[string]string{}
	err := ask(ctx, n.Address, word, func(r *bufio.Reader) error {
		n.probes.Add(1) // it was sent, so it counts whatever comes back
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
