package cluster_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
	"github.com/lockbench/lockbench/internal/scenario"
)

// TestSupports: unsupported actions are refused with a reason, in every backend
// and topology, and no others are.
func TestSupports(t *testing.T) {
	refused := map[string]string{ // actions
		"redis single": "cut-peers move", "redis quorum": "cut-peers move", "redis replicated": "",
		"etcd single": "cut-peers clock move close evict flush", "etcd quorum": "clock close evict flush",
		"zookeeper single": "cut-peers move close evict full flush", "zookeeper quorum": "move close evict full flush",
		"memcached single": "cut-peers move close slow-disk", "memcached sharded": "cut-peers move close slow-disk",
		"mysql single": "cut-peers move evict full flush", "mysql replicated": "move evict full flush", "mysql galera": "move evict full flush",
	}
	for _, backend := range cluster.Backends() {
		for _, topology := range cluster.Topologies(backend) {
			var got []string
			for _, action := range scenario.Abilities() {
				err := cluster.Supports(backend, topology, action)
				if err == nil {
					continue
				}
				got = append(got, action)
				if !errors.Is(err, cluster.ErrUnsupported) || len(err.Error()) < len(cluster.ErrUnsupported.Error())+20 {
					t.Errorf("%s %s %s is refused by %v", backend, topology, action, err)
				}
			}
			// A backend that is not listed here has a test of its own.
			want, known := refused[backend+" "+topology]
			if known && !sameWords(strings.Join(got, " "), want) {
				t.Errorf("%s %s does not support %q, want %q", backend, topology, got, want)
			}
			delete(refused, backend+" "+topology)
		}
	}
	if len(refused) > 0 {
		t.Errorf("there are no %v", refused)
	}
	for _, wrong := range [][3]string{{"oracle", "single", "kill"}, {"redis", "ring", "kill"}, {"redis", "single", "starve"}, {"redis", "single", "hug"}} {
		if err := cluster.Supports(wrong[0], wrong[1], wrong[2]); !errors.Is(err, cluster.ErrSpec) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

func sameWords(a, b string) bool {
	count := map[string]int{}
	for _, w := range strings.Fields(a) {
		count[w]++
	}
	for _, w := range strings.Fields(b) {
		count[w]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// Settings decide too.
func TestSettingsDecideSupport(t *testing.T) {
	for _, tt := range []struct {
		backend, action string
		settings        map[string]string
		reason          string // "": it can
	}{
		{"redis", "slow-disk", nil, "appendonly"},
		{"redis", "slow-disk", map[string]string{"appendonly": "yes"}, ""},
		{"redis", "slow-disk", map[string]string{"appendonly": "yes", "appendfsync": "no"}, "appendfsync"},
		{"etcd", "slow-disk", nil, ""},
		{"etcd", "slow-disk", map[string]string{"unsafe-no-fsync": "true"}, "unsafe-no-fsync"},
		{"etcd", "slow-disk", map[string]string{"unsafe-no-fsync": "false"}, ""},
		{"zookeeper", "slow-disk", map[string]string{"forceSync": "no"}, "forceSync"},
		{"mysql", "slow-disk", nil, ""},
		{"mysql", "slow-disk", map[string]string{"innodb_flush_log_at_trx_commit": "2"}, "no commit waits"},
		{"redis", "evict", nil, ""},
		{"redis", "evict", map[string]string{"maxmemory-policy": "allkeys-lru"}, ""},
		{"redis", "evict", map[string]string{"maxmemory-policy": "noeviction"}, "noeviction"},
		{"memcached", "evict", map[string]string{"M": ""}, "flag M"},
		{"memcached", "evict", map[string]string{"disable-evictions": ""}, "flag M"},
		{"etcd", "evict", nil, "never evicts"},
		{"redis", "full", nil, ""},
		{"etcd", "full", nil, ""},
		{"memcached", "full", nil, "flag M"},
		{"memcached", "full", map[string]string{"M": ""}, ""},
		{"memcached", "full", map[string]string{"disable-evictions": ""}, ""},
		{"zookeeper", "full", nil, "no limit"},
		{"mysql", "full", nil, "disk"},
	} {
		err := cluster.Spec{Backend: tt.backend, Settings: tt.settings}.Supports(tt.action)
		if tt.reason == "" && err != nil || tt.reason != "" && (!errors.Is(err, cluster.ErrUnsupported) || !strings.Contains(err.Error(), tt.reason)) {
			t.Errorf("%s %s with %v: %v, want %q", tt.backend, tt.action, tt.settings, err, tt.reason)
		}
	}
}

// TestFlush: all keys are gone afterwards, and the server serves.
func TestFlush(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		c := clustertest.Start(t, "redis", "single")
		talk(t, c, "SET lock a NX\r\n", "+OK")
		if how, err := c.Flush(t.Context(), 0); err != nil || how == "" {
			t.Fatalf("%q, %v", how, err)
		}
		talk(t, c, "DBSIZE\r\n", ":0")
		talk(t, c, "SET lock b NX\r\n", "+OK")
		if got := counters(t, c); got["set"] != 2 || got["flushall"] != 0 || got["exists"] != 0 {
			t.Errorf("clients' requests: %v", got)
		}
	})
	t.Run("memcached", func(t *testing.T) {
		t.Parallel()
		c := clustertest.Start(t, "memcached", "single")
		talk(t, c, "add lock 0 0 1\r\na\r\n", "STORED")
		if how, err := c.Flush(t.Context(), 0); err != nil || how == "" {
			t.Fatalf("%q, %v", how, err)
		}
		talk(t, c, "add lock 0 0 1\r\nb\r\n", "STORED")
		if got := counters(t, c); got["cmd_set"] != 2 || got["cmd_get"] != 0 || got["cmd_flush"] != 0 {
			t.Errorf("clients' requests: %v", got)
		}
	})
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		c := clustertest.Start(t, "mysql", "single")
		if _, err := c.Flush(t.Context(), 0); !errors.Is(err, cluster.ErrUnsupported) {
			t.Errorf("flush of a database: %v", err)
		}
		if _, err := c.Evict(t.Context(), 0, "x"); !errors.Is(err, cluster.ErrUnsupported) {
			t.Errorf("eviction from a database: %v", err)
		}
	})
}

func dialTalk(t *testing.T, address string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// line is the first line of an answer.
func line(t *testing.T, c *cluster.Cluster, request string) string {
	t.Helper()
	return lines(t, c.Addresses()[0], request, 1)
}

func lines(t *testing.T, address, request string, n int) string {
	t.Helper()
	conn, r := dialTalk(t, address)
	defer conn.Close()
	fmt.Fprint(conn, request)
	var all []string
	for range n {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%q: %v", request, err)
		}
		all = append(all, strings.TrimSpace(line))
	}
	return strings.Join(all, "\n")
}

func getLock(t *testing.T, conn *sql.Conn, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var got int
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK('x', 1)").Scan(&got); err != nil || got != want {
		t.Errorf("GET_LOCK: %d, %v; want %d", got, err, want)
	}
}

// TestPausedServersAreNotAsked: a request to a paused server would wait, and keep
// it from being resumed.
func TestPausedServersAreNotAsked(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "redis", "single")
	ctx := t.Context()
	talk(t, c, "SET lock a PX 600000\r\n", "+OK")
	if err := c.Pause(ctx, 0); err != nil {
		t.Fatal(err)
	}
	_, closeErr := c.CloseClients(ctx, 0)
	_, evictErr := c.Evict(ctx, 0, "lock")
	_, flushErr := c.Flush(ctx, 0)
	_, fillErr := c.Fill(ctx, 0)
	drainErr := c.Drain(ctx, 0)
	for _, err := range []error{closeErr, evictErr, flushErr, fillErr, drainErr} {
		if !errors.Is(err, cluster.ErrUnsupported) {
			t.Error(err)
		}
	}
	if err := c.Resume(ctx, 0); err != nil {
		t.Fatal(err)
	}
	talk(t, c, "GET lock\r\n", "$1")
}
