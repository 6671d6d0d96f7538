package mysql

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

// Backend is MariaDB's mariadbd or MySQL's mysqld. Of MySQL 8 only the single
// topology is supported, and no test covers it.
type Backend struct{}

// Describe: replicated is a primary and its replica. A member of a Galera group
// is called back at the address that it is seen to call from.
func (Backend) Describe() backend.Description {
	return backend.Description{
		Name: "mysql",
		Topologies: []backend.Topology{
			{Name: "single", Nodes: []int{1}, Ports: 1},
			{Name: replicated, Nodes: []int{2}, Ports: 1, Keeper: true, Links: []backend.Link{{Port: 0}}},
			{Name: galera, Nodes: []int{3}, Ports: 3, Leaderless: true, Majority: true, Links: []backend.Link{
				{Port: galeraGroup, From: backend.LinkHost, Awaited: time.Second}, {Port: galeraCatch, Awaited: time.Second},
			}},
		},
		Packages: backend.Packages{Debian: "mariadb-server", Brew: "mariadb"},
		Reserved: []string{
			"port", "bind-address", "bind_address", "datadir", "socket", "pid-file", "pid_file", "user", "max_connections", "max-connections", "mysqlx", "tmpdir", "server-id", "server_id",
			"wsrep-provider-options", "wsrep_provider_options", "wsrep-cluster-address", "wsrep_cluster_address", "wsrep-sst-method", "wsrep_sst_method",
		},
		Unsupported: map[string]string{
			scenario.AbilityEvict: "a database never evicts rows",
			scenario.AbilityFull:  "a database refuses when its disk is full, and the disk is this machine's",
			scenario.AbilityFlush: "a database has no command that forgets everything",
			scenario.AbilityMove:  "a primary hands over nothing by itself; use pause, kill or cut",
		},
		Color: color.NRGBA{0xD9, 0x92, 0x00, 0xff}, Glyph: backend.Ring,
	}
}

// Durable: a commit is on disk. (Settings that may change this are not checked.)
func (Backend) Durable(map[string]string) bool { return true }

// UnsupportedWith: with these values a commit waits for no disk.
func (Backend) UnsupportedWith(settings map[string]string, ability string) string {
	for _, name := range []string{"innodb-flush-log-at-trx-commit", "innodb_flush_log_at_trx_commit"} {
		if v := settings[name]; ability == scenario.AbilitySlowDisk && (v == "0" || v == "2") {
			return "no commit waits for a disk with " + name + "=" + v + "; set it to 1"
		}
	}
	return ""
}

// database is made for the recipes' tables.
const database = "lockbench"

func (Backend) Find(s backend.Search) (backend.Binary, error) {
	path, err := s.Program("mariadbd", "mysqld")
	if err != nil {
		return backend.Binary{}, err
	}
	text, err := backend.VersionOf(path, "--no-defaults", "--version")
	if err != nil {
		return backend.Binary{}, s.Unusable(err)
	}
	b := backend.Binary{Path: path, Product: productOf(text), Version: backend.Between(text, "Ver ", " \n"), Extra: map[string]string{}}
	if b.Product == "MariaDB" {
		install, err := mariadbInstaller(path)
		if err != nil {
			return backend.Binary{}, s.Missing(err.Error())
		}
		b.Extra["install"] = install
		b.Extra[galera] = galeraProvider(path)
	}
	return b, nil
}

func productOf(version string) string {
	if strings.Contains(version, "MariaDB") {
		return "MariaDB"
	}
	return "MySQL"
}

// Require: replicas and Galera groups are MariaDB's only.
func (Backend) Require(b backend.Binary, topology string) error {
	lacks := backend.MissingError{Backend: "mysql", Topology: topology}
	switch {
	case topology != replicated && topology != galera:
		return nil
	case b.Product != "MariaDB":
		lacks.What = "a " + topology + " topology takes MariaDB, and " + b.Path + " is " + b.Product
		lacks.Command = Backend{}.Describe().Packages.Command()
	case topology == galera && b.Extra[galera] == "":
		lacks.What = "libgalera_smm.so, by which MariaDB servers of a galera topology agree, was not found"
		lacks.Command = "apt-get install --no-install-recommends galera-4"
	default:
		return nil
	}
	return &lacks
}

// mariadbInstaller finds the program that makes a data folder: it belongs to
// the server, so it is searched beside it first.
func mariadbInstaller(server string) (string, error) {
	prefix := filepath.Dir(filepath.Dir(server))
	names := []string{"mariadb-install-db", "mysql_install_db"}
	for _, dir := range []string{filepath.Dir(server), filepath.Join(prefix, "bin"), filepath.Join(prefix, "scripts")} {
		for _, name := range names {
			if path := filepath.Join(dir, name); backend.Executable(path) == nil {
				return path, nil
			}
		}
	}
	if path := backend.Lookup(names...); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("%s is here, but mariadb-install-db, which makes its data folder, was not found", server)
}

func (m Backend) Command(ctx context.Context, c *backend.Cluster, n *backend.Node) (supervise.Command, error) {
	data := filepath.Join(n.Dir, "data")
	_, err := os.Stat(data)
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh {
		if err := install(ctx, c, n, data); err != nil {
			return supervise.Command{}, err
		}
	}
	args := []string{
		"--no-defaults", "--datadir=" + data, "--port=" + strconv.Itoa(n.Ports[0]), "--bind-address=" + n.Host,
		// Relative to the data folder: unix sockets' paths are short.
		"--socket=s.sock", "--pid-file=" + filepath.Join(n.Dir, "pid"),
		// A folder of its own: servers delete each other's files in a shared one.
		"--tmpdir=" + n.Dir,
		// A client may need a second connection, to end what it gave up.
		"--max-connections=" + strconv.Itoa(c.Connections(151)+c.Clients),
	}
	if c.Binary.Product == "MySQL" {
		// mysqlx would take a port of its own; files to import from lie in a
		// folder that only a packaged system service has.
		args = append(args, "--mysqlx=OFF", "--secure-file-priv=NULL")
	}
	if backend.Root() {
		args = append(args, "--user=root")
	}
	if !c.ClientNet.Addr().IsLoopback() {
		// A new server lets root in from loopback only, and looks up names of hosts.
		// Other servers do not get these statements.
		init := filepath.Join(n.Dir, "init.sql")
		text := "SET SESSION sql_log_bin=0;\n" + strings.Join(adminAccount(c), ";\n") + ";\n"
		if err := os.WriteFile(init, []byte(text), 0o600); err != nil {
			return supervise.Command{}, err
		}
		args = append(args, "--init-file="+init, "--skip-name-resolve")
	}
	flags, settings := map[string]string{}, c.Settings
	switch c.Topology.Name {
	case replicated:
		if flags, settings, err = replicatedFlags(c, n); err != nil {
			return supervise.Command{}, err
		}
	case galera:
		flags = galeraFlags(c, n)
	}
	// Of two the server takes the last.
	for _, set := range []map[string]string{flags, settings} {
		for _, name := range slices.Sorted(maps.Keys(set)) {
			args = append(args, "--"+name+"="+set[name])
		}
	}
	cmd := supervise.Command{Path: c.Binary.Path, Args: args}
	if c.Topology.Name == galera {
		cmd.Env = galeraEnv(n)
		if fresh {
			return cmd, galeraFound(c, n, data)
		}
		position, err := galeraPosition(ctx, c, n, args)
		if err != nil {
			return supervise.Command{}, err
		}
		cmd.Args = append(cmd.Args, "--wsrep-start-position="+position)
	}
	return cmd, nil
}

// install makes the data folder: system tables, and a root without password.
func install(ctx context.Context, c *backend.Cluster, n *backend.Node, data string) error {
	cmd := supervise.Command{Name: n.Name + " installation", Dir: n.Dir, Family: true}
	if install := c.Binary.Extra["install"]; install != "" {
		cmd.Path = install
		// --force: a machine whose own name cannot be looked up, which is how
		// bare ones are, is no reason to give up. We connect by 127.0.0.1.
		cmd.Args = []string{"--no-defaults", "--force", "--datadir=" + data, "--auth-root-authentication-method=normal", "--skip-test-db"}
		if prefix := filepath.Dir(filepath.Dir(c.Binary.Path)); prefix != "/usr" {
			cmd.Args = append(cmd.Args, "--basedir="+prefix)
		}
	} else {
		cmd.Path = c.Binary.Path
		cmd.Args = []string{"--no-defaults", "--initialize-insecure", "--secure-file-priv=NULL", "--datadir=" + data}
	}
	cmd.Args = append(cmd.Args, "--tmpdir="+n.Dir)
	if backend.Root() {
		cmd.Args = append(cmd.Args, "--user=root")
	}
	return c.RunOnce(ctx, n, cmd)
}

// Ready logs in and reads the path of the data folder.
func (Backend) Ready(ctx context.Context, c *backend.Cluster, n *backend.Node) error {
	all, err := askPairs(ctx, n, "SHOW GLOBAL VARIABLES LIKE 'datadir'")
	if err != nil {
		return err
	}
	if filepath.Clean(all["datadir"]) != filepath.Join(n.Dir, "data") {
		return fmt.Errorf("%w: another server answers", backend.ErrPortTaken)
	}
	if c.Topology.Name == galera {
		return galeraReady(ctx, n)
	}
	return nil
}

func (m Backend) Formed(ctx context.Context, c *backend.Cluster) error {
	if c.Topology.Name == replicated {
		return formReplicas(ctx, c)
	}
	return do(ctx, c.Nodes()[0], append(adminAccount(c), "CREATE DATABASE IF NOT EXISTS "+database)...)
}

// adminAccount are the statements that let root in from where clients are.
func adminAccount(c *backend.Cluster) []string {
	return []string{"CREATE USER IF NOT EXISTS root@" + clientHosts(c), "GRANT ALL ON *.* TO root@" + clientHosts(c) + " WITH GRANT OPTION"}
}

// clientHosts are the addresses that clients come from: on loopback any of it.
func clientHosts(c *backend.Cluster) string {
	if c.ClientNet.Addr().IsLoopback() {
		return "'127.%'"
	}
	return "'%'"
}

func (Backend) Settings(ctx context.Context, c *backend.Cluster, n *backend.Node) (map[string]string, error) {
	all, err := askPairs(ctx, n, "SHOW GLOBAL VARIABLES")
	if err != nil {
		return nil, err
	}
	names := []string{
		"innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "innodb_doublewrite", "innodb_flush_method",
		"innodb_buffer_pool_size", "innodb_lock_wait_timeout", "innodb_autoinc_lock_mode", "max_connections",
		"transaction_isolation", "tx_isolation", "autocommit", "thread_handling", "wait_timeout", "version_comment",
		"skip_name_resolve", "character_set_server",
	}
	for name := range c.Settings {
		names = append(names, strings.ReplaceAll(name, "-", "_"))
	}
	if c.Topology.Name == replicated {
		names = append(names, replicatedSettings()...)
	}
	settings := backend.Pick(all, nil, names...)
	if c.Topology.Name == galera {
		galeraSettings(all, settings)
	}
	return settings, nil
}

func (Backend) Facts(ctx context.Context, c *backend.Cluster, n *backend.Node) (backend.Facts, error) {
	all, err := askPairs(ctx, n, "SHOW GLOBAL VARIABLES LIKE 'version%'")
	if err != nil {
		return backend.Facts{}, err
	}
	s := c.ReadBack
	user := "root"
	if c.Topology.Name == replicated {
		user = clientUser
	}
	return backend.Facts{
		Product: productOf(all["version"] + all["version_comment"]), Version: all["version"], Limits: impls.DefaultLimits(),
		Durability: fmt.Sprintf("innodb_flush_log_at_trx_commit=%s sync_binlog=%s log_bin=%s",
			s["innodb_flush_log_at_trx_commit"], s["sync_binlog"], s["log_bin"]),
		Account: impls.Account{User: user, Database: database},
	}, nil
}

func (m Backend) Counters(ctx context.Context, c *backend.Cluster, n *backend.Node) (map[string]int64, error) {
	if c.Topology.Name == galera {
		return nil, backend.ErrFollower // of the others, as each of them is of it
	}
	if c.Topology.Name == replicated {
		refuses, err := readOnly(ctx, n)
		if err != nil || refuses {
			return nil, cmp.Or(err, backend.ErrFollower)
		}
	}
	all, err := askPairs(ctx, n, `SHOW GLOBAL STATUS LIKE 'Com\_%'`)
	if err != nil {
		return nil, err
	}
	counters := map[string]int64{}
	for name, value := range all {
		name = strings.ToLower(name)
		switch name {
		case "com_show_status", "com_show_variables", "com_show_slave_status", "com_show_replica_status":
			continue // only we ask for these
		}
		if v, err := strconv.ParseInt(value, 10, 64); err == nil {
			counters[name] = v
		}
	}
	return counters, nil
}
