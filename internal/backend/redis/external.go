package redis

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/backend"
)

// login is the command that logs in to a server of the user's; "" if it needs none.
func login(n *backend.Node) string {
	switch a := n.Access.Account; {
	case a.Password == "":
		return ""
	case a.User == "":
		return encode([]string{"AUTH", a.Password})
	default:
		return encode([]string{"AUTH", a.User, a.Password})
	}
}

// loggedIn reads the answer to login.
func loggedIn(r *bufio.Reader, n *backend.Node) error {
	if login(n) == "" {
		return nil
	}
	_, err := readReply(r)
	return err
}

// External: how clients find the sentinels of a user's is not described.
func (Backend) External() []string { return []string{"single", "quorum"} }

// Identify: the id of its data, which a restart may change, and of its replication.
func (Backend) Identify(ctx context.Context, n *backend.Node) (id backend.Identity, err error) {
	if _, err := ask(ctx, n, "PING"); err != nil && !strings.Contains(err.Error(), "NOPERM") {
		return id, err
	}
	id.Product = "redis"
	info, err := askInfo(ctx, n, "server")
	if err != nil {
		return id, nil // not permitted, and not needed
	}
	id.Version, id.ID = info["redis_version"], "run id "+info["run_id"]
	if v := info["valkey_version"]; v != "" {
		id.Product, id.Version = "Valkey", v
	}
	if info, err = askInfo(ctx, n, "replication"); err == nil {
		id.ID += ", replication id " + info["master_replid"]
		if info["role"] == "slave" {
			id.ReadOnly = "it is a replica of " + info["master_host"] + ":" + info["master_port"]
		}
	}
	return id, nil
}

// Claim does nothing: the names of the run's keys are its own.
func (Backend) Claim(context.Context, *backend.Cluster, string) error { return nil }

// Remove deletes the keys, with the counters of fencing tokens beside them.
func (Backend) Remove(ctx context.Context, c *backend.Cluster, _ string, keys []string) error {
	return c.Each(func(_ int, n *backend.Node) error {
		for part := range slices.Chunk(keys, 500) {
			command := []string{"DEL"}
			for _, key := range part {
				command = append(command, key, "{"+key+"}:fence")
			}
			if _, err := ask(ctx, n, command...); err != nil {
				return fmt.Errorf("%s: %w", n.Address, err)
			}
		}
		return nil
	})
}
