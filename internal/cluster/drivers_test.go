package cluster_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/cluster"
)

// etcdBinary is what `make servers` built; the drivers' search takes over if
// it is not there.
func etcdBinary(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/etcd")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

func useEtcd(t *testing.T, c *cluster.Cluster) {
	client, err := clientv3.New(clientv3.Config{Endpoints: c.Addresses(), DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	// Not before the counters are read: its end may cancel one watch after the other.
	t.Cleanup(func() { _ = client.Close() })
	ctx := t.Context()
	lease, err := client.Grant(ctx, 60)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := client.KeepAliveOnce(ctx, lease.ID); err != nil {
			t.Fatal(err)
		}
	}
	// Two watches on one stream are two requests.
	first, second := client.Watch(ctx, "a"), client.Watch(ctx, "b")
	for _, key := range []string{"a", "b", "c"} {
		if _, err := client.Put(ctx, key, "1"); err != nil {
			t.Fatal(err)
		}
	}
	<-first
	<-second
	if _, err := client.Get(ctx, "a"); err != nil {
		t.Fatal(err)
	}
}

func useMySQL(t *testing.T, c *cluster.Cluster) {
	db := sqlAt(t, c, 0)
	defer db.Close()
	for _, query := range []string{"CREATE TABLE t (a INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO t VALUES (1)", "SELECT a FROM t", "SELECT GET_LOCK('x', 0)"} {
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Print(...any)          {}

// openZooKeeper opens a session at one of the addresses.
func openZooKeeper(t *testing.T, addresses []string) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(addresses, 30*time.Second, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	return conn
}

// useZooKeeper sends four packets: the connect, a create, an exists, a close.
func useZooKeeper(t *testing.T, c *cluster.Cluster) {
	conn := openZooKeeper(t, c.Addresses())
	if _, err := conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.Exists("/a"); err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
