package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
)

func (mysql) answers(ctx context.Context, c *Cluster, n *Node) error {
	_, err := mysqlRefuses(ctx, c, n)
	return err
}

func (mysql) astray(ctx context.Context, c *Cluster, n, primary *Node) (string, error) {
	refuses, err := mysqlRefuses(ctx, c, n)
	if err != nil {
		return "", err
	}
	s, err := mysqlRow(ctx, n, c.mysqlWords().status)
	switch {
	case err != nil:
		return "", err
	case !refuses:
		return "it takes writes", nil
	case s["Master_Port"] != strconv.Itoa(primary.ports[0]):
		return "it follows another, or nobody", nil
	case s["Slave_IO_Running"] == "No":
		return "it has ceased to follow: " + s["Last_IO_Error"], nil
	case s["Slave_SQL_Running"] == "No":
		return "it has ceased to apply: " + s["Last_SQL_Error"], nil
	}
	return "", nil
}

// bringBack closes a node to clients, ends their connections, so that they look
// for the primary and what they hold there ends, and lets it follow. Writes that
// it has and the primary has not, taken while both took some or never sent
// before it died, are lost, as everywhere: no primary takes them back. Where
// there are such, nothing but the primary's own data will do, and the node gets
// a copy of them. (Of MySQL we cannot take that copy: such a node stays closed,
// and Healthy tells.)
func (m mysql) bringBack(ctx context.Context, c *Cluster, n, primary *Node) (string, error) {
	words := c.mysqlWords()
	// A server closes once no write is under way, and a write may wait for a row
	// that an idle client holds: so clients go first. They may come back before it
	// is closed.
	if err := mysqlDo(ctx, n, slices.Concat(words.dropClients, []string{words.fence}, words.dropClients)...); err != nil {
		return "", err
	}
	how := "it had nothing that the other has not"
	if words.own != nil {
		own, err := words.own(ctx, n, primary)
		if err != nil {
			return "", fmt.Errorf("what it has of its own: %w", err)
		}
		s, err := mysqlRow(ctx, n, words.status)
		if err != nil {
			return "", err
		}
		switch {
		case own != "":
			how = "its own writes (up to " + own + ") are lost; it has a copy of the other's data instead"
		case s["Slave_SQL_Running"] == "No" && s["Last_SQL_Error"] != "":
			own, how = "none", "it has a copy of the other's data"
		}
		if own != "" {
			if err := words.rebuild(ctx, primary, n); err != nil {
				return "", fmt.Errorf("copy the other's data to it: %w", err)
			}
		}
	}
	return how, mysqlDo(ctx, n, words.follow(c.peerHost(), primary.ports[0])...)
}
