package main

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/supervise"
	"github.com/lockbench/lockbench/internal/testenv"
)

// server starts a server of a backend with settings.
func (o *owned) server(backend string, settings map[string]string) (address string) {
	o.t.Helper()
	c, err := cluster.Start(o.t.Context(), o.run, cluster.Spec{Backend: backend, Settings: settings})
	if err != nil {
		o.t.Fatal(err)
	}
	return c.Addresses()[0]
}

// administrator is one of the database bench.
type administrator struct {
	execute func(statement string) error
	tables  func() ([]string, error)
}

// try runs a recipe in the database bench of a server, and then what must be
// refused. The administrator has made users bench and weak, who may only read.
func (o *owned) try(backend, recipe, address string, admin administrator, readOnly string) {
	t := o.t
	t.Helper()
	configure := func(name, login string) []string {
		file := o.write(name+".yaml", fmt.Sprintf("backends:\n  %s:\n    addresses: [%q]\n    database: bench\n    %s\n    %s\n", backend, address, login, clientTLS))
		return experiment(file, recipe)
	}
	execute := func(statement string) {
		t.Helper()
		if err := admin.execute(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	own := func(when string) {
		t.Helper()
		if names, err := admin.tables(); err != nil || !slices.Equal(names, []string{"theirs"}) {
			t.Errorf("the tables after %s: %v (%v), want the user's own alone", when, names, err)
		}
	}
	good := configure("good", "user: bench\n    password_file: password")
	contains(t, o.ran(good...), `"identity": "s`, address)
	own("the run")
	o.killed(func(context.Context) error {
		names, err := admin.tables()
		if err == nil && len(names) < 3 { // theirs, the mark of the run, and a lock's
			err = fmt.Errorf("only %v", names)
		}
		return err
	}, good...)
	o.ran(good...)
	own("the run after a killed one")
	o.refused("wrong user or password", configure("wrong", "user: bench\n    password_file: wrong")...)
	o.refused("missing privilege", configure("weak", "user: weak\n    password_file: password")...)
	execute("CREATE TABLE lockbench_run (run INT)")
	o.refused("has tables of another run (lockbench_run)", good...)
	execute("DROP TABLE lockbench_run")
	execute(readOnly)
	o.refused("it is read-only", good...)
	own("the refusals")
}

func TestExternalMySQLWithTLSAndPassword(t *testing.T) {
	testenv.NeedsServers(t, "mysql")
	o := newOwned(t)
	address := o.server("mysql", map[string]string{"ssl-cert": o.path("server.pem"), "ssl-key": o.path("server-key.pem"), "ssl-ca": o.path("ca.pem")})
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.MultiStatements = "root", "tcp", address, true
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE DATABASE bench; USE bench; CREATE TABLE theirs (id INT);" +
		"CREATE USER bench@'127.%' IDENTIFIED BY '" + secret + "' REQUIRE X509; CREATE USER weak@'127.%' IDENTIFIED BY '" + secret + "' REQUIRE X509;" +
		"GRANT ALL ON bench.* TO bench@'127.%'; GRANT SELECT ON bench.* TO weak@'127.%'"); err != nil {
		t.Fatal(err)
	}
	o.try("mysql", "mysql/lease-row,mysql/insert", address, administrator{
		execute: func(statement string) error { _, err := db.Exec(statement); return err },
		tables: func() (names []string, err error) {
			rows, err := db.Query("SHOW TABLES")
			if err != nil {
				return nil, err
			}
			defer rows.Close()
			for rows.Next() {
				var name string
				if err := rows.Scan(&name); err != nil {
					return nil, err
				}
				names = append(names, name)
			}
			return names, rows.Err()
		},
	}, "SET GLOBAL read_only = 1")
}

func TestExternalPostgresWithTLSAndPassword(t *testing.T) {
	testenv.NeedsServers(t, "postgres")
	o := newOwned(t)
	hba := o.write("hba.conf", "hostssl all bench,weak 127.0.0.0/8 scram-sha-256 clientcert=verify-ca\nhost all all 127.0.0.0/8 trust\n")
	key := o.path("server-key.pem")
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	if who, err := user.Lookup("postgres"); err == nil && os.Geteuid() == 0 {
		uid, _ := strconv.Atoi(who.Uid)
		if err := os.Chown(key, uid, -1); err != nil {
			t.Fatal(err)
		}
	}
	address := o.server("postgres", map[string]string{"ssl": "on", "ssl_cert_file": o.path("server.pem"), "ssl_key_file": key, "ssl_ca_file": o.path("ca.pem"), "hba_file": hba})
	open := func(database string) *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), "postgres://postgres@"+address+"/"+database+"?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.Background()) })
		return conn
	}
	first := open("postgres")
	for _, statement := range []string{"CREATE ROLE bench LOGIN PASSWORD '" + secret + "'", "CREATE ROLE weak LOGIN PASSWORD '" + secret + "'", "CREATE DATABASE bench OWNER bench"} {
		if _, err := first.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	conn := open("bench")
	if _, err := conn.Exec(t.Context(), "CREATE TABLE theirs (id INT)"); err != nil {
		t.Fatal(err)
	}
	o.try("postgres", "postgres/lease-row,postgres/advisory", address, administrator{
		execute: func(statement string) error { _, err := conn.Exec(t.Context(), statement); return err },
		tables: func() ([]string, error) {
			rows, err := conn.Query(t.Context(), "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
			if err != nil {
				return nil, err
			}
			return pgx.CollectRows(rows, pgx.RowTo[string])
		},
	}, "ALTER DATABASE bench SET default_transaction_read_only = on")
}

func TestExternalMemcachedWithTLS(t *testing.T) {
	testenv.NeedsServers(t, "memcached")
	o := newOwned(t)
	binary, err := cluster.Find("memcached", "")
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	args := []string{"-l", "127.0.0.1", "-p", portOf(address), "-U", "0", "-Z",
		"-o", "ssl_chain_cert=" + o.path("server.pem") + ",ssl_key=" + o.path("server-key.pem") + ",ssl_ca_cert=" + o.path("ca.pem") + ",ssl_verify_mode=2"}
	if os.Geteuid() == 0 {
		args = append(args, "-u", "root")
	}
	o.start(supervise.Command{Name: "memcached", Path: binary.Path, Dir: o.dir, Args: args})
	admin := memcache.New(address)
	dialer := &tls.Dialer{Config: o.tls}
	admin.DialContext = dialer.DialContext
	o.await("memcached", func(context.Context) error { return admin.Set(&memcache.Item{Key: "theirs", Value: []byte("kept")}) })
	config := o.write("good.yaml", fmt.Sprintf("backends: {memcached: {addresses: [%q], %s}}", address, clientTLS))
	o.ran(experiment(config, "memcached/cas")...)
	if _, err := admin.Get("theirs"); err != nil {
		t.Error(err)
	}
	if items := itemsOf(t, dialer, address); items != "1" {
		t.Errorf("the server has %s items after the run, want the user's own alone", items)
	}
	o.refused("it does not use TLS", experiment(o.write("plain.yaml", fmt.Sprintf("backends: {memcached: {addresses: [%q], %s}}", o.server("memcached", nil), clientTLS)), "memcached/cas")...)
}

// itemsOf is the number of items on a memcached.
func itemsOf(t *testing.T, dialer *tls.Dialer, address string) string {
	t.Helper()
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("stats\r\nquit\r\n")); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "STAT curr_items ")
	items, _, _ := strings.Cut(rest, "\r")
	return items
}

func TestExternalZooKeeperWithTLS(t *testing.T) {
	testenv.NeedsServers(t, "zookeeper")
	o := newOwned(t)
	read := func(name string) string {
		data, err := os.ReadFile(o.path(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	keys := o.write("keys.pem", read("server-key.pem")+read("server.pem"))
	address := freeAddress(t)
	plain := o.server("zookeeper", map[string]string{
		"secureClientPort": portOf(address), "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
		"ssl.keyStore.type": "PEM", "ssl.keyStore.location": keys, "ssl.trustStore.type": "PEM", "ssl.trustStore.location": o.path("ca.pem"),
	})
	config := o.write("good.yaml", fmt.Sprintf("backends: {zookeeper: {addresses: [%q], %s}}", address, clientTLS))
	contains(t, o.ran(experiment(config, "zookeeper/sequence")...), `"tickTime": "2000"`, "forceSync not known", address)
	conn, _, err := zk.Connect([]string{plain}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if nodes, _, err := conn.Children("/"); err != nil || !slices.Equal(nodes, []string{"zookeeper"}) {
		t.Errorf("the server's nodes after the run: %v (%v), want its own alone", nodes, err)
	}
}
