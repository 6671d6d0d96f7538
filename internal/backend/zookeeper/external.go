package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/backend"
)

// root is the recipes' own node.
const root = "/lockbench"

func (Backend) External() []string { return []string{"single", "quorum"} }

// Identify: an ensemble has no id. Servers answer "srvr" unless they are set
// otherwise, which is no error: the first session shows whether they serve.
func (Backend) Identify(ctx context.Context, n *backend.Node) (backend.Identity, error) {
	id := backend.Identity{Product: "Apache ZooKeeper"}
	stat, err := fourLetters(ctx, n, "srvr")
	if err != nil {
		return id, err
	}
	id.Version, _, _ = strings.Cut(stat["Zookeeper version"], "-")
	if stat["Mode"] == "read-only" {
		id.ReadOnly = "it has lost its ensemble"
	}
	return id, nil
}

// Claim does nothing: the names of the run's nodes are its own.
func (Backend) Claim(context.Context, *backend.Cluster, string) error { return nil }

// Remove deletes the parents of the run's locks, with what is in them, and the
// recipes' own node if no other run has anything in it.
func (Backend) Remove(ctx context.Context, c *backend.Cluster, run string, _ []string) error {
	secure := c.Nodes()[0].Access.TLS
	conn, events, err := zk.Connect(c.Addresses(), 10*time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false),
		zk.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			return impls.Encrypted((&net.Dialer{}).DialContext, secure)(ctx, network, address)
		}))
	if err != nil {
		return err
	}
	defer conn.Close()
	// The driver's calls have no time limit, but end when the connection is closed.
	defer context.AfterFunc(ctx, conn.Close)()
	go func() {
		for range events {
		}
	}()
	parents, err := children(conn, root)
	for _, parent := range parents {
		if err == nil && strings.Contains(parent, run+".") {
			err = removeParent(ctx, conn, root+"/"+parent)
		}
	}
	if err == nil {
		err = remove(conn, root)
		if errors.Is(err, zk.ErrNotEmpty) {
			return nil // other runs
		}
	}
	return cmp.Or(ctx.Err(), err)
}

// removeParent deletes a node with what is in it. A request that a client sent
// before its end may still create a node there, so it tries until ctx ends.
func removeParent(ctx context.Context, conn *zk.Conn, path string) error {
	for {
		locks, err := children(conn, path)
		for _, lock := range locks {
			err = cmp.Or(err, remove(conn, path+"/"+lock))
		}
		err = cmp.Or(err, remove(conn, path))
		if !errors.Is(err, zk.ErrNotEmpty) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func children(conn *zk.Conn, path string) ([]string, error) {
	names, _, err := conn.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// remove deletes a node, which may be gone already.
func remove(conn *zk.Conn, path string) error {
	if err := conn.Delete(path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("delete %s: %w", path, err)
	}
	return nil
}
