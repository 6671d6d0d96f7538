package cluster_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// TestCloseRedisClients: clients are closed, those that listen too, and the
// replicas and sentinels are not.
func TestCloseRedisClients(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "redis", "replicated", unhurried())
	caller, _ := dialTalk(t, c.Addresses()[0])
	defer caller.Close()
	listener, r := dialTalk(t, c.Addresses()[0])
	defer listener.Close()
	ping(t, caller)
	fmt.Fprint(listener, "SUBSCRIBE news\r\n")
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if closed, err := c.CloseClients(t.Context(), 0); err != nil || closed != 2 {
		t.Errorf("closed %d, %v; want 2", closed, err)
	}
	ended(t, caller)
	ended(t, listener)
	if err := c.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	if closed, err := c.CloseClients(t.Context(), 0); err != nil || closed != 0 {
		t.Errorf("with no clients it closed %d, %v", closed, err)
	}
}

func ping(t *testing.T, conn net.Conn) {
	t.Helper()
	fmt.Fprint(conn, "PING\r\n")
	if n, err := conn.Read(make([]byte, 16)); err != nil || n != len("+PONG\r\n") {
		t.Fatalf("ping: %d bytes, %v", n, err)
	}
}

// ended: the other side has closed the connection.
func ended(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is not closed: %v", err)
	}
}

// TestCloseMySQLClients: a closed client loses its lock at once, and the replica
// goes on.
func TestCloseMySQLClients(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "mysql", "replicated")
	db := sqlAt(t, c, 0)
	holder, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	getLock(t, holder, 1)
	if closed, err := c.CloseClients(t.Context(), 0); err != nil || closed != 1 {
		t.Errorf("closed %d, %v; want 1", closed, err)
	}
	if err := holder.PingContext(t.Context()); err == nil {
		t.Error("the connection lives")
	}
	other, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	getLock(t, other, 1)
	if err := c.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCloseRefused: servers without a command for it do not support CloseClients.
func TestCloseRefused(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "memcached", "single")
	if _, err := c.CloseClients(t.Context(), 0); !errors.Is(err, cluster.ErrUnsupported) {
		t.Errorf("memcached: %v", err)
	}
	if _, err := c.CloseClients(t.Context(), 3); !errors.Is(err, cluster.ErrSpec) {
		t.Errorf("a node that is not there: %v", err)
	}
}
