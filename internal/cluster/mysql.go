package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/supervise"
)

// mysql starts MariaDB's mariadbd or MySQL's mysqld.
type mysql struct{}

// mysqlDatabase is made for the recipes' tables.
const mysqlDatabase = "lockbench"

// topologies: replicated is a primary and its replica.
func (mysql) topologies() []topology {
	return []topology{{"single", []int{1}}, {"replicated", []int{2}}, {galera, []int{3}}}
}

func (mysql) ports(topology string) int {
	if topology == galera {
		return 3
	}
	return 1
}

func (mysql) links(topology string) []linkPort {
	switch topology {
	case "replicated":
		return []linkPort{{place: 0}}
	case galera:
		// Who calls is called back at the address that he is seen to call from.
		return []linkPort{{place: galeraGroup, from: linkHost, awaited: time.Second}, {place: galeraCatch, awaited: time.Second}}
	}
	return nil
}

func (mysql) reserved() []string {
	return []string{"port", "bind-address", "bind_address", "datadir", "socket", "pid-file", "pid_file", "user", "max_connections", "max-connections", "mysqlx", "tmpdir", "server-id", "server_id",
		"wsrep-provider-options", "wsrep_provider_options", "wsrep-cluster-address", "wsrep_cluster_address", "wsrep-sst-method", "wsrep_sst_method"}
}

func (mysql) find(s search) (Binary, error) {
	path, err := s.program("mariadbd", "mysqld")
	if err != nil {
		return Binary{}, err
	}
	text, err := versionOf(path, "--no-defaults", "--version")
	if err != nil {
		return Binary{}, s.unusable(err)
	}
	b := Binary{Path: path, Product: mysqlProduct(text), Version: between(text, "Ver ", " \n"), Extra: map[string]string{}}
	if b.Product == "MariaDB" {
		install, err := mariadbInstaller(path)
		if err != nil {
			return Binary{}, s.missing(err.Error(), packages("mysql"))
		}
		b.Extra["install"] = install
		b.Extra[galera] = galeraProvider(path)
	}
	return b, nil
}

func mysqlProduct(version string) string {
	if strings.Contains(version, "MariaDB") {
		return "MariaDB"
	}
	return "MySQL"
}

// mariadbInstaller finds the program that makes a data folder: it belongs to
// the server, so it is searched beside it first.
func mariadbInstaller(server string) (string, error) {
	prefix := filepath.Dir(filepath.Dir(server))
	names := []string{"mariadb-install-db", "mysql_install_db"}
	for _, dir := range []string{filepath.Dir(server), filepath.Join(prefix, "bin"), filepath.Join(prefix, "scripts")} {
		for _, name := range names {
			if path := filepath.Join(dir, name); executable(path) == nil {
				return path, nil
			}
		}
	}
	if path := lookup(names...); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("%s is here, but mariadb-install-db, which makes its data folder, was not found", server)
}

func (m mysql) command(ctx context.Context, run *supervise.Run, c *Cluster, n *Node) (supervise.Command, error) {
	data := filepath.Join(n.dir, "data")
	_, err := os.Stat(data)
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh {
		if err := m.install(ctx, run, c, n, data); err != nil {
			return supervise.Command{}, err
		}
	}
	args := []string{
		"--no-defaults", "--datadir=" + data, "--port=" + strconv.Itoa(n.ports[0]), "--bind-address=127.0.0.1",
		// Relative to the data folder: unix sockets' paths are short.
		"--socket=s.sock", "--pid-file=" + filepath.Join(n.dir, "pid"),
		// A folder of its own: servers delete each other's files in a shared one.
		"--tmpdir=" + n.dir,
		// A client may need a second connection, to end what it gave up.
		"--max-connections=" + strconv.Itoa(c.connections(151)+c.spec.Clients),
	}
	if c.binary.Product == "MySQL" {
		// mysqlx would take a port of its own; files to import from lie in a
		// folder that only a packaged system service has.
		args = append(args, "--mysqlx=OFF", "--secure-file-priv=NULL")
	}
	if root() {
		args = append(args, "--user=root")
	}
	flags, settings := map[string]string{}, c.spec.Settings
	switch c.spec.Topology {
	case "replicated":
		if flags, settings, err = mysqlReplicated(c, n); err != nil {
			return supervise.Command{}, err
		}
	case galera:
		flags = galeraFlags(c, n)
	}
	// Of two the server takes the last.
	for _, set := range []map[string]string{flags, settings} {
		for _, name := range sortedKeys(set) {
			args = append(args, "--"+name+"="+set[name])
		}
	}
	cmd := supervise.Command{Path: c.binary.Path, Args: args}
	if c.spec.Topology == galera {
		cmd.Env = galeraEnv(n)
		if fresh {
			return cmd, galeraFound(c, n, data)
		}
		position, err := m.galeraPosition(ctx, run, c, n, args)
		if err != nil {
			return supervise.Command{}, err
		}
		cmd.Args = append(cmd.Args, "--wsrep-start-position="+position)
	}
	return cmd, nil
}

// install makes the data folder: system tables, and a root without password.
func (mysql) install(ctx context.Context, run *supervise.Run, c *Cluster, n *Node, data string) error {
	cmd := supervise.Command{Name: n.Name + " installation", Dir: n.dir, Family: true}
	if install := c.binary.Extra["install"]; install != "" {
		cmd.Path = install
		// --force: a machine whose own name cannot be looked up, which is how
		// bare ones are, is no reason to give up. We connect by 127.0.0.1.
		cmd.Args = []string{"--no-defaults", "--force", "--datadir=" + data, "--auth-root-authentication-method=normal", "--skip-test-db"}
		if prefix := filepath.Dir(filepath.Dir(c.binary.Path)); prefix != "/usr" {
			cmd.Args = append(cmd.Args, "--basedir="+prefix)
		}
	} else {
		cmd.Path = c.binary.Path
		cmd.Args = []string{"--no-defaults", "--initialize-insecure", "--secure-file-priv=NULL", "--datadir=" + data}
	}
	cmd.Args = append(cmd.Args, "--tmpdir="+n.dir)
	if root() {
		cmd.Args = append(cmd.Args, "--user=root")
	}
	return c.runOnce(ctx, run, n, cmd)
}

// ready logs in and asks for the data folder.
func (mysql) ready(ctx context.Context, c *Cluster, n *Node) error {
	all, err := mysqlRows(ctx, n, "SHOW GLOBAL VARIABLES LIKE 'datadir'")
	if err != nil {
		return err
	}
	if filepath.Clean(all["datadir"]) != filepath.Join(n.dir, "data") {
		return fmt.Errorf("%w: another server answers", errPortTaken)
	}
	if c.spec.Topology == galera {
		return galeraReady(ctx, n)
	}
	return nil
}

func (m mysql) formed(ctx context.Context, c *Cluster) error {
	if c.spec.Topology == "replicated" {
		return m.formReplicas(ctx, c)
	}
	// Clients may come from any loopback address.
	return mysqlDo(ctx, c.Nodes()[0], "CREATE DATABASE IF NOT EXISTS "+mysqlDatabase,
		"CREATE USER IF NOT EXISTS root@'127.%'", "GRANT ALL ON *.* TO root@'127.%' WITH GRANT OPTION")
}

func (mysql) settings(ctx context.Context, c *Cluster, n *Node) (map[string]string, error) {
	all, err := mysqlRows(ctx, n, "SHOW GLOBAL VARIABLES")
	if err != nil {
		return nil, err
	}
	names := []string{
		"innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "innodb_doublewrite", "innodb_flush_method",
		"innodb_buffer_pool_size", "innodb_lock_wait_timeout", "innodb_autoinc_lock_mode", "max_connections",
		"transaction_isolation", "tx_isolation", "autocommit", "thread_handling", "wait_timeout", "version_comment",
		"skip_name_resolve", "character_set_server",
	}
	for name := range c.spec.Settings {
		names = append(names, strings.ReplaceAll(name, "-", "_"))
	}
	if c.spec.Topology == "replicated" {
		names = append(names, "read_only", "binlog_format")
		names = append(names, c.mysqlWords().settings...)
	}
	settings := pick(all, nil, names...)
	if c.spec.Topology == galera {
		galeraSettings(all, settings)
	}
	return settings, nil
}

func (mysql) facts(ctx context.Context, c *Cluster, n *Node) (facts, error) {
	all, err := mysqlRows(ctx, n, "SHOW GLOBAL VARIABLES LIKE 'version%'")
	if err != nil {
		return facts{}, err
	}
	s := c.settings
	user := "root"
	if c.spec.Topology == "replicated" {
		user = mysqlUser
	}
	return facts{
		product: mysqlProduct(all["version"] + all["version_comment"]), version: all["version"], limits: impls.DefaultLimits(),
		durability: fmt.Sprintf("innodb_flush_log_at_trx_commit=%s sync_binlog=%s log_bin=%s",
			s["innodb_flush_log_at_trx_commit"], s["sync_binlog"], s["log_bin"]),
		account: impls.Account{User: user, Database: mysqlDatabase},
	}, nil
}

func (m mysql) counters(ctx context.Context, c *Cluster, n *Node) (map[string]int64, error) {
	if c.spec.Topology == galera {
		return nil, errFollower // of the others, as each of them is of it
	}
	if c.spec.Topology == "replicated" {
		refuses, err := mysqlRefuses(ctx, c, n)
		if err != nil || refuses {
			return nil, cmp.Or(err, errFollower)
		}
	}
	all, err := mysqlRows(ctx, n, `SHOW GLOBAL STATUS LIKE 'Com\_%'`)
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

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
