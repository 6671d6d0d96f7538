package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/testenv"
)

// owner is the owner of a server: its connections are those of a stranger.
type owner struct {
	connect func(context.Context) (execute func(statement string) error, leave func())
	privy   string // permits the account to list clients; "": it may
	mark    string
}

func (w owner) does(t *testing.T, statement string) {
	t.Helper()
	execute, leave := w.connect(t.Context())
	defer leave()
	if err := execute(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// faults tries a fault on a server, whose conditions come true one by one.
func (o *owned) faults(name, recipe, address, login string, w owner) {
	t := o.t
	t.Helper()
	experiment := func(identity string, more ...string) []string {
		pinned := ""
		if identity != "" {
			pinned = fmt.Sprintf("identities: [%q]", identity)
		}
		file := o.write("faults.yaml", fmt.Sprintf("backends:\n  %s:\n    addresses: [%q]\n    %s\n    %s\n", name, address, login, pinned))
		return append([]string{"--env", "external", "--config", file, "--recipe", recipe, "--fault", "node:1-close", "--fault-at", "300ms",
			"--ttl", "3s", "--clients", "2"}, more...)
	}
	const allow = "--allow-destructive"
	got := o.lockbench(append([]string{"run", "--quiet"}, experiment("", allow)...)...)
	found := regexp.MustCompile(`a fault on it needs its identity in the configuration: it is "([^"]+)"`).FindStringSubmatch(got.stderr)
	if got.code != int(exitInternal) || found == nil {
		t.Fatalf("without an identity: exit %d, %q", got.code, got.stderr)
	}
	if name == "redis" { // which is alike for all
		o.refused("needs --allow-destructive", experiment(found[1])...)
		o.refused("it is another server, or was started again", experiment(found[1]+"0", allow)...)
	}
	pinned := experiment(found[1], allow)
	o.refused("create the key (redis) or table (in the database) "+backend.Marker, pinned...)
	w.does(t, w.mark)
	if w.privy != "" {
		o.refused("the list of its clients needs a", pinned...)
		w.does(t, w.privy)
	}
	_, leave := w.connect(t.Context())
	o.refused("other clients are connected", pinned...)
	leave()
	o.ran(pinned...)
	faults, err := filepath.Glob(filepath.Join(o.out, "*", "*", scenario.FileFaults))
	if err != nil || len(faults) != 1 {
		t.Fatalf("files of faults: %v (%v)", faults, err)
	}
	log, err := os.ReadFile(faults[0])
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(log), "connections closed: ", address)
	// What an external server cannot be made to do is refused with all permissions.
	misused(t, "hits servers", append(append([]string{"run"}, pinned...), "--fault", "node:1-kill")...)
}

func TestExternalRedisFaults(t *testing.T) {
	testenv.NeedsServers(t, "redis")
	o := newOwned(t)
	address := o.server("redis", nil)
	o.faults("redis", "redis/token", address, "", owner{mark: "SET " + backend.Marker + " 1", connect: func(ctx context.Context) (func(string) error, func()) {
		c := redis.NewClient(&redis.Options{Addr: address})
		if err := c.Ping(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		return func(string) error { return c.Set(ctx, backend.Marker, "1", 0).Err() }, func() { _ = c.Close() }
	}})
}

// Clients that connect while a run goes on are spared, too.
func TestExternalFaultsSpareOtherClients(t *testing.T) {
	testenv.NeedsServers(t, "redis")
	o := newOwned(t)
	address, ctx := o.server("redis", nil), t.Context()
	connect := func(user, password string) *redis.Client {
		client := redis.NewClient(&redis.Options{Addr: address, Username: user, Password: password, MaxRetries: -1})
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	other := connect("", "")
	for _, command := range [][]any{{"SET", backend.Marker, "1"}, {"ACL", "SETUSER", "bench", "on", ">" + secret, "~*", "&*", "+@all"}} {
		if err := other.Do(ctx, command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	e, err := cluster.Visit(ctx, "redis", "single", cluster.External{Addresses: []string{address}, Account: impls.Account{User: "bench", Password: secret}, AllowDestructive: true})
	if err != nil {
		t.Fatal(err)
	}
	e.Pinned = []string{e.Info().Nodes[0].Identity}
	own := connect("bench", secret).Conn() // does not connect again
	alive := func(c interface {
		Ping(context.Context) *redis.StatusCmd
	}) bool {
		return c.Ping(ctx).Err() == nil
	}
	if !alive(own) {
		t.Fatal("the run's client does not connect")
	}
	if closed, err := e.CloseClients(ctx, 0); closed != 0 || err == nil || !strings.Contains(err.Error(), "other clients are connected (default@127.0.0.1)") {
		t.Errorf("beside another client: %d closed, %v", closed, err)
	}
	if !alive(own) || !alive(other) {
		t.Error("a refused fault closed a connection")
	}
	_ = other.Close()
	o.await("redis", func(ctx context.Context) error {
		closed, err := e.CloseClients(ctx, 0)
		if err == nil && closed != 1 {
			t.Errorf("%d connections closed, want the run's one", closed)
		}
		return err
	})
	if alive(own) {
		t.Error("the run's connection is still open")
	}
}

func TestExternalMySQLFaults(t *testing.T) {
	testenv.NeedsServers(t, "mysql")
	o := newOwned(t)
	address := o.server("mysql", nil)
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.MultiStatements = "root", "tcp", address, true
	w := owner{privy: "GRANT PROCESS ON *.* TO bench@'127.%'", mark: "CREATE TABLE bench." + backend.Marker + " (id INT)",
		connect: func(ctx context.Context) (func(string) error, func()) {
			connector, err := mysql.NewConnector(cfg)
			if err != nil {
				t.Fatal(err)
			}
			db := sql.OpenDB(connector)
			if err := db.PingContext(ctx); err != nil {
				t.Fatal(err)
			}
			return func(s string) error { _, err := db.ExecContext(ctx, s); return err }, func() { _ = db.Close() }
		}}
	w.does(t, "CREATE DATABASE bench; CREATE USER bench@'127.%' IDENTIFIED BY '"+secret+"'; GRANT ALL ON bench.* TO bench@'127.%'")
	o.faults("mysql", "mysql/lease-row", address, "database: bench\n    user: bench\n    password_file: password", w)
}

func TestExternalPostgresFaults(t *testing.T) {
	testenv.NeedsServers(t, "postgres")
	o := newOwned(t)
	address := o.server("postgres", nil)
	database := "postgres"
	w := owner{privy: "GRANT pg_read_all_stats TO bench", mark: "CREATE TABLE " + backend.Marker + " (id INT)",
		connect: func(ctx context.Context) (func(string) error, func()) {
			conn, err := pgx.Connect(ctx, "postgres://postgres@"+address+"/"+database+"?sslmode=disable")
			if err != nil {
				t.Fatal(err)
			}
			return func(s string) error { _, err := conn.Exec(ctx, s); return err }, func() { _ = conn.Close(context.WithoutCancel(ctx)) }
		}}
	w.does(t, "CREATE ROLE bench LOGIN PASSWORD '"+secret+"'")
	w.does(t, "CREATE DATABASE bench OWNER bench")
	database = "bench"
	o.faults("postgres", "postgres/lease-row", address, "database: bench\n    user: bench\n    password_file: password", w)
}
