package mysql

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/lockbench/lockbench/internal/backend"
)

// replicated is the topology of a primary and its replica by GTID. It is for
// MariaDB only. Every node is ready to be either: it starts closed to clients,
// and Promote opens one.
const replicated = "replicated"

// semiSync is the setting, "on" or "off", by which commits of a replicated
// topology wait until a replica has them, for up to three seconds. It stands for
// several settings of the server.
const semiSync = "semi-sync"

// clientUser is the account of clients in a replicated topology: an
// administrator may write where others may not.
const clientUser = "lockbench"

// The statements of the topology.
const (
	rejectWrites  = "SET GLOBAL read_only=ON"
	acceptWrites  = "SET GLOBAL read_only=OFF"
	replicaStatus = "SHOW SLAVE STATUS"
	stopReading   = "STOP SLAVE IO_THREAD" // it goes on to apply what it has
	stopReplica   = "STOP SLAVE"
	resetReplica  = "RESET SLAVE ALL"
	dropClients   = "KILL USER " + clientUser
)

// follow makes a server the replica of the primary.
func follow(c *backend.Cluster, primary *backend.Node) []string {
	return []string{
		stopReplica, resetReplica,
		// The node has all writes in its log, as primary or as replica.
		"SET GLOBAL gtid_slave_pos=@@GLOBAL.gtid_binlog_pos",
		fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%d, MASTER_USER='root', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos", c.PeerHost(primary), primary.Ports[0]),
		"START SLAVE",
	}
}

// replicatedFlags returns the flags of a node of the topology, and the caller's
// settings without those that are not the server's.
func replicatedFlags(c *backend.Cluster, n *backend.Node) (flags, settings map[string]string, err error) {
	flags = map[string]string{
		"log-bin": "binlog", "log-slave-updates": "ON", "relay-log": "relay",
		"gtid-strict-mode": "ON", "read-only": "ON", "slave-net-timeout": "4",
		"server-id": strconv.Itoa(n.Index + 1),
	}
	settings = maps.Clone(c.Settings)
	switch how := settings[semiSync]; how {
	case "on":
		maps.Copy(flags, map[string]string{
			"rpl-semi-sync-master-enabled": "ON", "rpl-semi-sync-slave-enabled": "ON",
			"rpl-semi-sync-master-timeout": "3000", "rpl-semi-sync-master-wait-point": "AFTER_SYNC",
		})
	case "", "off":
	default:
		return nil, nil, fmt.Errorf("%w: the setting %s=%q: choose on or off", backend.ErrSpec, semiSync, how)
	}
	delete(settings, semiSync)
	return flags, settings, nil
}

// replicatedSettings are those to read back.
func replicatedSettings() []string {
	return []string{
		"read_only", "binlog_format", "gtid_strict_mode", "slave_net_timeout", "slave_parallel_mode",
		"rpl_semi_sync_master_enabled", "rpl_semi_sync_master_timeout", "rpl_semi_sync_master_wait_point",
		"rpl_semi_sync_master_wait_no_slave", "rpl_semi_sync_slave_enabled",
	}
}

// formReplicas opens the first node and makes the others its replicas.
func formReplicas(ctx context.Context, c *backend.Cluster) error {
	nodes := c.Nodes()
	primary, hosts := nodes[c.Primary()], clientHosts(c)
	err := do(ctx, primary, acceptWrites,
		"CREATE DATABASE "+database,
		"CREATE USER "+clientUser+"@"+hosts, "CREATE USER "+clientUser+"@'localhost'",
		"GRANT ALL ON "+database+".* TO "+clientUser+"@"+hosts, "GRANT ALL ON "+database+".* TO "+clientUser+"@'localhost'",
		// A clean-up of a row lock looks for its own transaction among all.
		"GRANT PROCESS ON *.* TO "+clientUser+"@"+hosts, "GRANT PROCESS ON *.* TO "+clientUser+"@'localhost'")
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if n == primary {
			continue
		}
		if err := do(ctx, n, follow(c, primary)...); err != nil {
			return fmt.Errorf("make %s a replica: %w", n.Name, err)
		}
	}
	return nil
}

// Whole: one node accepts writes, and the other follows it and has all that it
// has sent.
func (b Backend) Whole(ctx context.Context, c *backend.Cluster) error {
	switch c.Topology.Name {
	case galera:
		return galeraWhole(ctx, c)
	case replicated:
	default:
		return nil
	}
	leader, err := b.Leader(ctx, c)
	if err != nil {
		return err
	}
	nodes := c.Nodes()
	primary := nodes[leader]
	for i, n := range nodes {
		if i == leader {
			continue
		}
		s, err := askRow(ctx, n, replicaStatus)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		if s["Master_Port"] != strconv.Itoa(primary.Ports[0]) {
			return fmt.Errorf("%s is no replica of %s", n.Name, primary.Name)
		}
		if s["Slave_IO_Running"] != "Yes" || s["Slave_SQL_Running"] != "Yes" {
			return fmt.Errorf("%s does not follow %s: reading %s %s, applying %s %s", n.Name, primary.Name,
				s["Slave_IO_Running"], s["Last_IO_Error"], s["Slave_SQL_Running"], s["Last_SQL_Error"])
		}
	}
	if c.Settings[semiSync] != "on" {
		return nil
	}
	const waiting = "Rpl_semi_sync_master_status"
	status, err := askPairs(ctx, primary, "SHOW GLOBAL STATUS LIKE '"+waiting+"'")
	if err == nil && status[waiting] != "ON" {
		err = fmt.Errorf("%s commits without waiting for a replica", primary.Name)
	}
	return err
}

// Leader is the only node that accepts writes. With a keeper it is the one that
// the keeper has chosen, if it accepts writes, even if an old one accepts them, too.
func (Backend) Leader(ctx context.Context, c *backend.Cluster) (int, error) {
	if c.Topology.Name != replicated {
		return 0, c.NoLeader()
	}
	answers, err := backend.Collect(c.Nodes(), func(n *backend.Node) (bool, error) { return readOnly(ctx, n) })
	if err != nil {
		return 0, err
	}
	var open []*backend.Node
	for _, a := range answers {
		if !a.Value {
			open = append(open, a.Node)
		}
	}
	if i := slices.IndexFunc(open, func(n *backend.Node) bool { return n.Index == c.Primary() }); c.Kept && i >= 0 {
		open = open[i : i+1]
	}
	switch len(open) {
	case 0:
		return 0, fmt.Errorf("%w: no server accepts writes", backend.ErrNoLeader)
	case 1:
		return open[0].Index, nil
	}
	return 0, fmt.Errorf("%w: both %s and %s accept writes; Fence one", backend.ErrNoLeader, open[0].Name, open[1].Name)
}

// readOnly reports whether clients cannot write to the node.
func readOnly(ctx context.Context, n *backend.Node) (bool, error) {
	v, err := askPairs(ctx, n, "SHOW GLOBAL VARIABLES LIKE 'read_only'")
	return v["read_only"] == "ON", err
}

// Fence makes a primary reject writes.
func (Backend) Fence(ctx context.Context, c *backend.Cluster, n *backend.Node) error {
	if c.Topology.Name != replicated {
		return c.NoLeader()
	}
	return do(ctx, n, rejectWrites)
}

// Promote makes a replica the primary once it has applied the received writes.
func (Backend) Promote(ctx context.Context, c *backend.Cluster, n *backend.Node, fenced bool) error {
	if c.Topology.Name != replicated {
		return c.NoLeader()
	}
	old := c.Nodes()[c.Primary()]
	if n.Index == old.Index {
		return do(ctx, n, acceptWrites)
	}
	// A replica that does not apply writes must be left as it is: a MariaDB that
	// neither reads nor applies discards the received writes when it starts again,
	// because it expects to read them from the primary once more.
	if _, err := applying(ctx, n); err != nil {
		return err
	}
	handover := fenced && old.Alive()
	if handover {
		if err := caughtUp(ctx, old, n); err != nil {
			return err
		}
	}
	if err := do(ctx, n, stopReading); err != nil {
		return err
	}
	if err := awaitApplied(ctx, n); err != nil {
		return err
	}
	if err := do(ctx, n, stopReplica, resetReplica, acceptWrites); err != nil {
		return err
	}
	c.SetPrimary(n.Index)
	if handover {
		if err := do(ctx, old, follow(c, n)...); err != nil {
			return fmt.Errorf("it is the primary now, but %s does not follow it: %w", old.Name, err)
		}
	}
	return nil
}

// caughtUp returns when the replica has all writes of a living primary that
// accepts no more. It is ErrNotFenced if the primary may still accept some.
func caughtUp(ctx context.Context, old, n *backend.Node) error {
	if old.Paused() {
		return fmt.Errorf("%w: %s is paused, and goes on where it was; Kill it, or PromoteUnfenced", backend.ErrNotFenced, old.Name)
	}
	refuses, err := readOnly(ctx, old)
	if err != nil {
		return fmt.Errorf("%w: %s does not answer: %w; Kill it, or PromoteUnfenced", backend.ErrNotFenced, old.Name, err)
	}
	if !refuses {
		return fmt.Errorf("%w: %s; Fence it or Kill it first", backend.ErrNotFenced, old.Name)
	}
	err = backend.Await(ctx, func() (bool, error) {
		var has [2]map[string]string
		for i, one := range []*backend.Node{old, n} {
			if has[i], err = askPairs(ctx, one, "SHOW GLOBAL VARIABLES LIKE 'gtid%'"); err != nil {
				return false, fmt.Errorf("the position of %s: %w", one.Name, err)
			}
		}
		return has[0]["gtid_binlog_pos"] == has[1]["gtid_slave_pos"], nil
	})
	if err != nil {
		return fmt.Errorf("wait until it has all of %s: %w", old.Name, err)
	}
	return nil
}

// awaitApplied returns when a replica that reads no more has applied what it has
// received in full. A last transaction that came only in part is lost, as if it
// had not come.
func awaitApplied(ctx context.Context, n *backend.Node) error {
	return backend.Await(ctx, func() (bool, error) {
		s, err := applying(ctx, n)
		if err != nil {
			return false, err
		}
		v, err := askPairs(ctx, n, "SHOW GLOBAL VARIABLES LIKE 'gtid_slave_pos'")
		return v["gtid_slave_pos"] == s["Gtid_IO_Pos"], err
	})
}

// applying returns the status of a replica that applies what it receives.
func applying(ctx context.Context, n *backend.Node) (map[string]string, error) {
	s, err := askRow(ctx, n, replicaStatus)
	switch {
	case err != nil:
	case s == nil:
		err = fmt.Errorf("%w: it has no primary; Kill and Restart it", backend.ErrServer)
	case s["Slave_SQL_Running"] != "Yes":
		err = fmt.Errorf("%w: it does not apply what it has received: %s", backend.ErrServer, s["Last_SQL_Error"])
	}
	return s, err
}

// Rejoin opens the primary again, and makes any other node its replica, whatever
// it was. A node with writes that no other node has does not follow then, which
// Healthy reports.
func (Backend) Rejoin(ctx context.Context, c *backend.Cluster, n *backend.Node) error {
	if c.Topology.Name != replicated {
		return nil
	}
	primary := c.Nodes()[c.Primary()]
	if n.Index == primary.Index {
		return do(ctx, n, acceptWrites)
	}
	s, err := askRow(ctx, n, replicaStatus)
	if err != nil || s["Master_Port"] == strconv.Itoa(primary.Ports[0]) {
		return err // it follows by itself where it left off
	}
	return do(ctx, n, follow(c, primary)...)
}
