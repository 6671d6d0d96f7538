package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/supervise"
)

// A standby cannot be made of a running server: a server becomes one when it is
// started on a copy of the primary's data. So each start of a node that is not
// the primary takes such a copy, unless it has followed the present primary
// before.

// Commits wait for the replica where the caller sets synchronous_standby_names
// ("*"); PostgreSQL's default is that they do not.

const (
	rejectWrites = "ALTER SYSTEM SET default_transaction_read_only = on"
	acceptWrites = "ALTER SYSTEM RESET default_transaction_read_only"
	reload       = "SELECT pg_reload_conf()"
	endClients   = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '" + clientUser + "'"
)

// follows reports whether the data folder is that of a standby of the primary.
func follows(data string, primary *backend.Node) bool {
	if _, err := os.Stat(filepath.Join(data, "standby.signal")); err != nil {
		return false
	}
	conf, err := os.ReadFile(filepath.Join(data, "postgresql.auto.conf"))
	return err == nil && strings.Contains(string(conf), "port="+strconv.Itoa(primary.Ports[0])+" ")
}

// copyPrimary replaces the data folder by a copy of the primary's, as a standby
// of it. The primary may be starting still.
func copyPrimary(ctx context.Context, c *backend.Cluster, n, primary *backend.Node, data string, who *supervise.Account) error {
	err := backend.Await(ctx, func() (bool, error) {
		replica, err := askOne[bool](ctx, primary, "SELECT pg_is_in_recovery()")
		return err == nil && !replica, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s, whose data it copies: %w", primary.Name, err)
	}
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	cmd := as(supervise.Command{Name: n.Name + " copy", Path: c.Binary.Extra["pg_basebackup"], Dir: n.Dir, Tree: true,
		Args: []string{"-D", data, "-d", fmt.Sprintf("host=%s port=%d user=%s", primary.Host, primary.Ports[0], admin),
			"--wal-method=stream", "--checkpoint=fast", "--write-recovery-conf", "--no-sync"}}, who)
	return c.RunOnce(ctx, n, cmd)
}

// conninfo is where a standby finds the primary: by the link between them, which
// may run through a proxy. The copy is taken past it.
func conninfo(c *backend.Cluster, primary *backend.Node) string {
	return fmt.Sprintf("host=%s port=%d user=%s", c.PeerHost(primary), primary.Ports[0], admin)
}

// Leader is the node that accepts writes.
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
	switch {
	case len(open) == 0:
		return 0, fmt.Errorf("%w: none accepts writes", backend.ErrNoLeader)
	case len(open) == 1:
		return open[0].Index, nil
	case c.Kept:
		return c.Primary(), nil // the one that clients are meant to use
	}
	return 0, fmt.Errorf("%w: both %s and %s accept writes; Fence one", backend.ErrNoLeader, open[0].Name, open[1].Name)
}

// readOnly reports whether new transactions on the node cannot write.
func readOnly(ctx context.Context, n *backend.Node) (bool, error) {
	return askOne[bool](ctx, n, "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool")
}

// Whole: one accepts writes, and the other receives them from it.
func (b Backend) Whole(ctx context.Context, c *backend.Cluster) error {
	if c.Topology.Name != replicated {
		return nil
	}
	primary, err := b.Leader(ctx, c)
	if err != nil {
		return err
	}
	nodes := c.Nodes()
	for i, n := range nodes {
		if i == primary {
			continue
		}
		if why, err := b.Misplaced(ctx, c, n, nodes[primary]); err != nil || why != "" {
			return errors.Join(err, fmt.Errorf("%s: %s", n.Name, why))
		}
	}
	streaming, err := askOne[int](ctx, nodes[primary], "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")
	if err == nil && streaming < len(nodes)-1 {
		err = fmt.Errorf("%s sends its log to %d of %d replicas", nodes[primary].Name, streaming, len(nodes)-1)
	}
	return err
}

// Promote makes the replica the primary. What it has not received is lost. A
// living server cannot become a replica, so an old primary that lives has to be
// killed and restarted.
func (Backend) Promote(ctx context.Context, c *backend.Cluster, n *backend.Node, fenced bool) error {
	if c.Topology.Name != replicated {
		return c.NoLeader()
	}
	old := c.Nodes()[c.Primary()]
	if n.Index == old.Index {
		return do(ctx, n, acceptWrites, reload)
	}
	if fenced && old.Alive() {
		return fmt.Errorf("%w: %s lives, and cannot become a replica while it does; Kill it first", backend.ErrNotFenced, old.Name)
	}
	done, err := askOne[bool](ctx, n, "SELECT pg_promote(true, 4)")
	if err == nil && !done {
		err = fmt.Errorf("%w: it did not become the primary within 4s", backend.ErrServer)
	}
	if err != nil {
		return err
	}
	c.SetPrimary(n.Index)
	return nil
}

// Fence ends the sessions of clients and rejects their next writes. Locks of the
// sessions (pg_advisory_lock) end with them.
func (Backend) Fence(ctx context.Context, c *backend.Cluster, n *backend.Node) error {
	if c.Topology.Name != replicated {
		return c.NoLeader()
	}
	return do(ctx, n, rejectWrites, reload, endClients)
}

// Rejoin has nothing to do: Command has given the node its role.
func (Backend) Rejoin(context.Context, *backend.Cluster, *backend.Node) error { return nil }

// Answers asks whether the node accepts writes.
func (Backend) Answers(ctx context.Context, _ *backend.Cluster, n *backend.Node) error {
	_, err := readOnly(ctx, n)
	return err
}

// Misplaced asks the node whether it is a standby, and whose.
func (Backend) Misplaced(ctx context.Context, c *backend.Cluster, n, primary *backend.Node) (string, error) {
	from, err := askOne[string](ctx, n, "SELECT CASE WHEN pg_is_in_recovery() THEN current_setting('primary_conninfo') ELSE '' END")
	switch {
	case err != nil:
		return "", err
	case from == "":
		return "it is no standby", nil
	case !strings.Contains(from, "port="+strconv.Itoa(primary.Ports[0])+" "):
		return "it follows another server", nil
	}
	return "", nil
}

// BringBack fences the node: its writes that the primary does not have are lost
// when it is started again on a copy of the primary's data.
func (b Backend) BringBack(ctx context.Context, c *backend.Cluster, n, _ *backend.Node) (string, error) {
	if err := b.Fence(ctx, c, n); err != nil {
		return "", err
	}
	return "it is fenced, and gets a copy of the primary's data; writes of its own are lost", backend.ErrNeedsRestart
}
