package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image/color"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
)

// Backend is PostgreSQL.
type Backend struct{}

// The topologies besides single.
const (
	replicated = "replicated" // a primary and its streaming replica
	pooled     = "pooled"     // clients connect through PgBouncer
)

func (Backend) Describe() backend.Description {
	return backend.Description{
		Name: "postgres",
		Topologies: []backend.Topology{
			{Name: "single", Nodes: []int{1}, Ports: 1},
			{Name: replicated, Nodes: []int{2}, Ports: 1, Keeper: true, Links: []backend.Link{{Port: 0, Awaited: 5 * time.Second}}},
			{Name: pooled, Nodes: []int{1}, Ports: 1, Proxied: true},
		},
		Packages: backend.Packages{Debian: "postgresql pgbouncer", Brew: "postgresql@16 pgbouncer"},
		Reserved: []string{"port", "listen_addresses", "unix_socket_directories", "data_directory", "max_connections", "shared_preload_libraries", "logging_collector"},
		Unsupported: map[string]string{
			scenario.AbilityEvict: "a database never evicts rows",
			scenario.AbilityFull:  "a database rejects writes when its disk is full, and the disk is this machine's",
			scenario.AbilityFlush: "a database has no command that deletes everything",
			scenario.AbilityMove:  "a primary hands over nothing by itself; use pause, kill or cut",
		},
		Color: color.NRGBA{0x6A, 0x4C, 0x93, 0xff}, Glyph: backend.Triangle,
	}
}

// Durable: a commit is on disk, unless it does not wait for that.
func (Backend) Durable(settings map[string]string) bool {
	return !backend.Off(settings, "synchronous_commit")
}

// UnsupportedWith: with these settings a commit waits for no disk.
func (Backend) UnsupportedWith(settings map[string]string, action string) string {
	for _, name := range []string{"fsync", "synchronous_commit"} {
		if action == scenario.AbilitySlowDisk && backend.Off(settings, name) {
			return "no commit waits for a disk with " + name + "=off; leave that out"
		}
	}
	return ""
}

// Find looks beside the server for initdb. Debian keeps the programs of each
// version in a folder of their own, none on PATH; the newest counts.
func (Backend) Find(s backend.Search) (backend.Binary, error) {
	path := newest("/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres", "/opt/homebrew/opt/postgresql@*/bin/postgres", "/usr/local/opt/postgresql@*/bin/postgres")
	if s.Named != "" || path == "" {
		var err error
		if path, err = s.Program("postgres"); err != nil {
			return backend.Binary{}, err
		}
	}
	text, err := backend.VersionOf(path, "--version")
	if err != nil {
		return backend.Binary{}, s.Unusable(err)
	}
	b := backend.Binary{Path: path, Product: "PostgreSQL", Version: backend.Between(text, "(PostgreSQL) ", " \n"), Extra: map[string]string{}}
	for _, name := range []string{"initdb", "pg_basebackup"} {
		b.Extra[name] = filepath.Join(filepath.Dir(path), name)
		if backend.Executable(b.Extra[name]) != nil {
			return backend.Binary{}, s.Missing(path + " is here, but " + name + " beside it was not found")
		}
	}
	b.Extra[pgbouncer] = backend.Lookup(pgbouncer)
	return b, nil
}

// newest is the executable whose path, of those that match, has the highest
// version; "" if there is none.
func newest(patterns ...string) string {
	for _, pattern := range patterns {
		paths, _ := filepath.Glob(pattern) // the pattern is well-formed
		paths = slices.DeleteFunc(paths, func(p string) bool { return backend.Executable(p) != nil })
		if len(paths) > 0 {
			return slices.MaxFunc(paths, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
		}
	}
	return ""
}

// Require: a pooled topology needs PgBouncer.
func (b Backend) Require(binary backend.Binary, topology string) error {
	if topology != pooled || binary.Extra[pgbouncer] != "" {
		return nil
	}
	return &backend.MissingError{Backend: "postgres", Topology: topology, What: pgbouncer + " was not found",
		Command: "apt-get install --no-install-recommends " + pgbouncer}
}

func (b Backend) Command(ctx context.Context, c *backend.Cluster, n *backend.Node) (supervise.Command, error) {
	who, err := account()
	if err != nil {
		return supervise.Command{}, err
	}
	if n.Role == backend.RoleProxy {
		return proxyCommand(c, n, who)
	}
	data := filepath.Join(n.Dir, "data")
	if err := prepare(ctx, c, n, data, who); err != nil {
		return supervise.Command{}, err
	}
	settings := map[string]string{
		"port": strconv.Itoa(n.Ports[0]), "listen_addresses": n.Host,
		"unix_socket_directories": "", "logging_collector": "off",
		// A client may need a second connection, to end what it gave up.
		"max_connections": strconv.Itoa(c.Connections(100) + c.Clients),
		// What counts the statements, at once and by kind.
		"shared_preload_libraries": "pg_stat_statements",
	}
	if primary := c.Nodes()[c.Primary()]; n.Index != primary.Index {
		settings["primary_conninfo"] = conninfo(c, primary)
	}
	maps.Copy(settings, c.Settings)
	args := []string{"-D", data}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return as(supervise.Command{Path: c.Binary.Path, Args: args, Dir: n.Dir, Tree: true}, who), nil
}

// prepare makes the data folder, or leaves the one of the last start.
func prepare(ctx context.Context, c *backend.Cluster, n *backend.Node, data string, who *supervise.Account) error {
	_, err := os.Stat(data)
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh {
		if err := own(c, n, who); err != nil {
			return err
		}
	}
	primary := c.Nodes()[c.Primary()]
	switch {
	case n.Index == primary.Index && fresh:
		return install(ctx, c, n, data, who)
	case n.Index != primary.Index && !follows(data, primary):
		return copyPrimary(ctx, c, n, primary, data, who)
	}
	return nil
}

// install makes the data folder. Connections from this machine need no password.
func install(ctx context.Context, c *backend.Cluster, n *backend.Node, data string, who *supervise.Account) error {
	cmd := as(supervise.Command{Name: n.Name + " installation", Path: c.Binary.Extra["initdb"], Dir: n.Dir, Tree: true,
		Args: []string{"-D", data, "-U", admin, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"}}, who)
	if err := c.RunOnce(ctx, n, cmd); err != nil {
		return err
	}
	// Clients may come from any address of their network.
	hba, err := os.OpenFile(filepath.Join(data, "pg_hba.conf"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = hba.WriteString("host all,replication all " + c.ClientNet.String() + " trust\n")
	return errors.Join(err, hba.Close())
}

// Ready asks for the data folder.
func (Backend) Ready(ctx context.Context, _ *backend.Cluster, n *backend.Node) error {
	if n.Role == backend.RoleProxy {
		return proxyReady(ctx, n)
	}
	data, err := askOne[string](ctx, n, "SHOW data_directory")
	if err != nil {
		return err
	}
	if data != filepath.Join(n.Dir, "data") {
		return fmt.Errorf("%w: another server answers", backend.ErrPortTaken)
	}
	return nil
}

// Formed creates what counts statements, the clients' account and their database.
func (Backend) Formed(ctx context.Context, c *backend.Cluster) error {
	return do(ctx, c.Nodes()[c.Primary()], "CREATE EXTENSION pg_stat_statements",
		"CREATE ROLE "+clientUser+" LOGIN", "CREATE DATABASE "+database+" OWNER "+clientUser)
}

func (Backend) Settings(ctx context.Context, c *backend.Cluster, n *backend.Node) (map[string]string, error) {
	if n.Role == backend.RoleProxy {
		return proxySettings(ctx, n)
	}
	all, err := askPairs[string](ctx, n, "SELECT name, current_setting(name) FROM pg_settings")
	if err != nil {
		return nil, err
	}
	return backend.Pick(all, c.Settings, "fsync", "synchronous_commit", "synchronous_standby_names", "full_page_writes", "wal_sync_method", "wal_level",
		"shared_buffers", "max_connections", "deadlock_timeout", "default_transaction_isolation", "shared_preload_libraries"), nil
}

func (Backend) Facts(ctx context.Context, c *backend.Cluster, n *backend.Node) (backend.Facts, error) {
	version, err := askOne[string](ctx, n, "SHOW server_version")
	return backend.Facts{
		Product: "PostgreSQL", Version: version, Limits: impls.DefaultLimits(),
		Durability: fmt.Sprintf("fsync=%s synchronous_commit=%s", c.ReadBack["fsync"], c.ReadBack["synchronous_commit"]),
		Account:    impls.Account{User: clientUser, Database: database},
	}, err
}

// Counters are the statements of clients by their first word.
func (Backend) Counters(ctx context.Context, _ *backend.Cluster, n *backend.Node) (map[string]int64, error) {
	if replica, err := askOne[bool](ctx, n, "SELECT pg_is_in_recovery()"); err != nil || replica {
		return nil, cmp.Or(err, backend.ErrFollower)
	}
	return askPairs[int64](ctx, n, `SELECT lower(split_part(query, ' ', 1)), sum(calls)::bigint
FROM pg_stat_statements JOIN pg_roles ON pg_roles.oid = userid WHERE rolname = `+quote(clientUser)+` GROUP BY 1`)
}

// CloseClients ends the sessions of clients, and returns when they are gone.
func (Backend) CloseClients(ctx context.Context, c *backend.Cluster, n *backend.Node) (closed int, err error) {
	sessions, err := askPairs[bool](ctx, n, `SELECT pid::text, pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = `+quote(clientUser))
	if err != nil {
		return 0, err
	}
	err = c.AwaitAll(ctx, func() error {
		left, err := askPairs[bool](ctx, n, `SELECT pid::text, true FROM pg_stat_activity WHERE usename = `+quote(clientUser))
		if err != nil {
			return err
		}
		for pid := range left {
			if sessions[pid] {
				return fmt.Errorf("session %s has not ended yet", pid)
			}
		}
		return nil
	})
	return len(sessions), err
}

// WallClock asks the server for its clock.
func (Backend) WallClock(ctx context.Context, n *backend.Node) (time.Time, error) {
	return askOne[time.Time](ctx, n, "SELECT clock_timestamp()")
}
