package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// mysqlSemiSync is the setting, "on" or "off", by which commits of a replicated
// topology wait until a replica has them, for up to three seconds. It is one
// word for what takes several, and other ones in MariaDB and MySQL.
const mysqlSemiSync = "semi-sync"

// mysqlUser is whom clients of a replicated topology log in as: an
// administrator may write where others may not.
const mysqlUser = "lockbench"

func (c *Cluster) mysqlWords() mysqlWords {
	if c.binary.Product == "MySQL" {
		return mysqlOracleWords()
	}
	return mariaDBWords()
}

// mysqlReplicated returns the flags of a node of the topology, and the caller's
// settings without those that are not the server's.
func mysqlReplicated(c *Cluster, n *Node) (flags, settings map[string]string, err error) {
	words := c.mysqlWords()
	flags = maps.Clone(words.flags)
	flags["server-id"] = strconv.Itoa(n.index + 1)
	settings = maps.Clone(c.spec.Settings)
	switch how := settings[mysqlSemiSync]; how {
	case "on":
		maps.Copy(flags, words.semiSync)
	case "", "off":
	default:
		return nil, nil, fmt.Errorf("%w: the setting %s=%q: choose on or off", ErrSpec, mysqlSemiSync, how)
	}
	delete(settings, mysqlSemiSync)
	return flags, settings, nil
}

// formReplicas opens the first node and makes the others its replicas.
func (m mysql) formReplicas(ctx context.Context, c *Cluster) error {
	c.roles.Lock()
	defer c.roles.Unlock()
	words, nodes, primary := c.mysqlWords(), c.Nodes(), int(c.primary.Load())
	err := mysqlDo(ctx, nodes[primary], words.open,
		"CREATE DATABASE "+mysqlDatabase,
		// Clients may come from any loopback address.
		"CREATE USER "+mysqlUser+"@'127.%'", "CREATE USER "+mysqlUser+"@'localhost'",
		"GRANT ALL ON "+mysqlDatabase+".* TO "+mysqlUser+"@'127.%'", "GRANT ALL ON "+mysqlDatabase+".* TO "+mysqlUser+"@'localhost'",
		// A clean-up of a row lock looks for its own transaction among all.
		"GRANT PROCESS ON *.* TO "+mysqlUser+"@'127.%'", "GRANT PROCESS ON *.* TO "+mysqlUser+"@'localhost'")
	if err != nil {
		return err
	}
	for i, n := range nodes {
		if i != primary {
			if err := mysqlDo(ctx, n, words.follow(c.peerHost(), nodes[primary].ports[0])...); err != nil {
				return fmt.Errorf("make %s a replica: %w", n.Name, err)
			}
		}
	}
	return nil
}

// whole: one takes writes, and the other follows it and has all it has sent.
func (m mysql) whole(ctx context.Context, c *Cluster) error {
	if c.spec.Topology == galera {
		return galeraWhole(ctx, c)
	}
	if c.spec.Topology != "replicated" {
		return nil
	}
	primary, err := m.leader(ctx, c)
	if err != nil {
		return err
	}
	nodes, words := c.Nodes(), c.mysqlWords()
	for i, n := range nodes {
		if i == primary {
			continue
		}
		s, err := mysqlRow(ctx, n, words.status)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		if s["Master_Port"] != strconv.Itoa(nodes[primary].ports[0]) {
			return fmt.Errorf("%s is no replica of %s", n.Name, nodes[primary].Name)
		}
		if s["Slave_IO_Running"] != "Yes" || s["Slave_SQL_Running"] != "Yes" {
			return fmt.Errorf("%s does not follow %s: reading %s %s, applying %s %s", n.Name, nodes[primary].Name,
				s["Slave_IO_Running"], s["Last_IO_Error"], s["Slave_SQL_Running"], s["Last_SQL_Error"])
		}
	}
	if c.spec.Settings[mysqlSemiSync] != "on" {
		return nil
	}
	status, err := mysqlRows(ctx, nodes[primary], "SHOW GLOBAL STATUS LIKE '"+words.waiting+"'")
	if err == nil && status[words.waiting] != "ON" {
		err = fmt.Errorf("%s commits without waiting for a replica", nodes[primary].Name)
	}
	return err
}

// leader is the node that takes writes, if there is one only. With a keeper it
// is the one that this has chosen, if it takes writes, whatever an old one does.
func (m mysql) leader(ctx context.Context, c *Cluster) (int, error) {
	if c.spec.Topology != "replicated" {
		return 0, noLeaders(c)
	}
	answers, err := collect(c.Nodes(), func(n *Node) (bool, error) { return mysqlRefuses(ctx, c, n) })
	if err != nil {
		return 0, err
	}
	var open []*Node
	for _, a := range answers {
		if !a.said {
			open = append(open, a.node)
		}
	}
	if i := slices.IndexFunc(open, func(n *Node) bool { return n.index == int(c.primary.Load()) }); c.keeper != nil && i >= 0 {
		open = open[i : i+1]
	}
	switch len(open) {
	case 0:
		return 0, fmt.Errorf("%w: none takes writes", ErrNoLeader)
	case 1:
		return open[0].index, nil
	}
	return 0, fmt.Errorf("%w: both %s and %s take writes; Fence one", ErrNoLeader, open[0].Name, open[1].Name)
}

// mysqlRefuses tells whether clients cannot write to the node.
func mysqlRefuses(ctx context.Context, c *Cluster, n *Node) (bool, error) {
	v, err := mysqlRows(ctx, n, "SHOW GLOBAL VARIABLES LIKE '%read_only'")
	return v[c.mysqlWords().refuses] == "ON", err
}

func (m mysql) fence(ctx context.Context, c *Cluster, n *Node) error {
	if c.spec.Topology != "replicated" {
		return noLeaders(c)
	}
	return mysqlDo(ctx, n, c.mysqlWords().fence)
}

func (m mysql) promote(ctx context.Context, c *Cluster, n *Node, fenced bool) error {
	if c.spec.Topology != "replicated" {
		return noLeaders(c)
	}
	words, old := c.mysqlWords(), c.Nodes()[c.primary.Load()]
	if n.index == old.index {
		return mysqlDo(ctx, n, words.open)
	}
	// One that does not apply has to be left as it is: a MariaDB that neither
	// reads nor applies throws away what it has received when it starts again,
	// for it means to ask the primary once more.
	if _, err := mysqlApplying(ctx, n, words); err != nil {
		return err
	}
	handover := fenced && old.alive()
	if handover {
		if err := m.caughtUp(ctx, c, old, n); err != nil {
			return err
		}
	}
	if err := mysqlDo(ctx, n, words.stopReading); err != nil {
		return err
	}
	if err := mysqlApplied(ctx, n, words); err != nil {
		return err
	}
	if err := mysqlDo(ctx, n, append(words.forget, words.open)...); err != nil {
		return err
	}
	c.primary.Store(int32(n.index))
	if handover {
		if err := mysqlDo(ctx, old, words.follow(c.peerHost(), n.ports[0])...); err != nil {
			return fmt.Errorf("it is the primary now, but %s does not follow it: %w", old.Name, err)
		}
	}
	return nil
}

// caughtUp returns when the replica has all of a living primary that takes no
// more writes. It is ErrNotFenced if that one may still take some.
func (m mysql) caughtUp(ctx context.Context, c *Cluster, old, n *Node) error {
	if old.paused() {
		return fmt.Errorf("%w: %s is paused, and goes on where it was; Kill it, or PromoteUnfenced", ErrNotFenced, old.Name)
	}
	refuses, err := mysqlRefuses(ctx, c, old)
	if err != nil {
		return fmt.Errorf("%w: %s does not answer: %w; Kill it, or PromoteUnfenced", ErrNotFenced, old.Name, err)
	}
	if !refuses {
		return fmt.Errorf("%w: %s; Fence it or Kill it first", ErrNotFenced, old.Name)
	}
	err = again(ctx, func() (bool, error) {
		var has [2]variables
		for i, one := range []*Node{old, n} {
			if has[i], err = mysqlRows(ctx, one, "SHOW GLOBAL VARIABLES LIKE 'gtid%'"); err != nil {
				return false, fmt.Errorf("what %s has: %w", one.Name, err)
			}
		}
		return !c.mysqlWords().behind(has[0], has[1]), nil
	})
	if err != nil {
		return fmt.Errorf("wait until it has all of %s: %w", old.Name, err)
	}
	return nil
}

// mysqlApplied returns when a replica that reads no more has applied what it
// has received in full. A last transaction that came only in part is lost, as
// if it had not come.
func mysqlApplied(ctx context.Context, n *Node, words mysqlWords) error {
	return again(ctx, func() (bool, error) {
		s, err := mysqlApplying(ctx, n, words)
		if err != nil {
			return false, err
		}
		return words.applied(ctx, n, s)
	})
}

// mysqlApplying returns the status of a replica that applies what it receives.
func mysqlApplying(ctx context.Context, n *Node, words mysqlWords) (map[string]string, error) {
	s, err := mysqlRow(ctx, n, words.status)
	switch {
	case err != nil:
	case s == nil:
		err = fmt.Errorf("%w: it is a replica of nobody; Kill and Restart it", ErrServer)
	case s["Slave_SQL_Running"] != "Yes":
		err = fmt.Errorf("%w: it does not apply what it has received: %s", ErrServer, s["Last_SQL_Error"])
	}
	return s, err
}

// rejoin opens the primary again, and makes any other node its replica, whatever
// it was: it may have writes of its own that nobody else has, and then follows
// nobody, which Healthy tells.
func (m mysql) rejoin(ctx context.Context, c *Cluster, n *Node) error {
	if c.spec.Topology != "replicated" {
		return nil
	}
	c.roles.Lock()
	defer c.roles.Unlock()
	words, primary := c.mysqlWords(), c.Nodes()[c.primary.Load()]
	if n.index == primary.index {
		return mysqlDo(ctx, n, words.open)
	}
	s, err := mysqlRow(ctx, n, words.status)
	if err != nil || s["Master_Port"] == strconv.Itoa(primary.ports[0]) {
		return err // it follows by itself where it left off
	}
	return mysqlDo(ctx, n, words.follow(c.peerHost(), primary.ports[0])...)
}

// again asks every ten milliseconds until something holds.
func again(ctx context.Context, holds func() (bool, error)) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if ok, err := holds(); ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
