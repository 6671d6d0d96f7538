package cluster_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// clocked starts one server whose clock can be set.
func clocked(t *testing.T, backend string, settings map[string]string) *cluster.Cluster {
	t.Helper()
	return clustertest.StartSpec(t, cluster.Spec{Backend: backend, Clock: true, Settings: settings})
}

func setClock(t *testing.T, c *cluster.Cluster, by time.Duration) {
	t.Helper()
	how, err := c.SetClock(t.Context(), 0, by)
	if err != nil {
		t.Fatalf("set the clock %v ahead: %v", by, err)
	}
	t.Logf("%v ahead: %s", by, how)
}

// TestRedisClock: a lock's expiry goes by the server's wall clock, so a clock
// that jumps frees a lock whose holder is well within its TTL.
func TestRedisClock(t *testing.T) {
	t.Parallel()
	c := clocked(t, "redis", nil)
	if err := c.Can("clock"); err != nil {
		t.Error(err)
	}
	if c.Info().Settings["wall clock"] == "" {
		t.Error("the record does not name the library")
	}
	talk(t, c, "SET lock a NX PX 20000\r\n", "+OK")
	left := func() int64 {
		t.Helper()
		ms, err := strconv.ParseInt(strings.TrimPrefix(line(t, c, "PTTL lock\r\n"), ":"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return ms
	}
	if ms := left(); ms < 10000 || ms > 20000 {
		t.Errorf("before any jump %d ms are left of 20 s", ms)
	}
	setClock(t, c, 15*time.Second)
	if ms := left(); ms > 5000 {
		t.Errorf("15 s ahead, %d ms are left of 20 s", ms)
	}
	setClock(t, c, -30*time.Second)
	if ms := left(); ms < 40000 {
		t.Errorf("30 s behind, %d ms are left of 20 s", ms)
	}
	setClock(t, c, 0)
	if ms := left(); ms < 10000 || ms > 20000 {
		t.Errorf("set right, %d ms are left of 20 s", ms)
	}
	talk(t, c, "SET lock b NX PX 20000\r\n", "$-1")
	setClock(t, c, 21*time.Second)
	talk(t, c, "SET lock b NX PX 20000\r\n", "+OK")

	// A restart does not change the clock.
	if err := c.Kill(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SetClock(t.Context(), 0, time.Hour); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the clock of a dead server: %v", err)
	}
	if err := c.Restart(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if ahead := serverTime(t, c) - time.Now().Unix(); ahead < 15 {
		t.Errorf("started again it is %d s ahead, not 21", ahead)
	}
	if err := c.Kill(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	setClock(t, c, 0)
	if err := c.Restart(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if ahead := serverTime(t, c) - time.Now().Unix(); ahead > 5 {
		t.Errorf("set right it is %d s ahead", ahead)
	}
	if err := c.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	// What we asked for is not counted for the clients.
	for name, n := range counters(t, c) {
		if n < 0 || name == "time" && n > 2 {
			t.Errorf("%d requests of %s", n, name)
		}
	}
}

// serverTime is the time of a redis, in seconds.
func serverTime(t *testing.T, c *cluster.Cluster) int64 {
	t.Helper()
	lines := strings.Split(lines(t, c.Addresses()[0], "TIME\r\n", 3), "\n")
	seconds, err := strconv.ParseInt(lines[2], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seconds
}

// TestMySQLClock: NOW() jumps, and a wait does not get longer by the jump, as it
// would if only the clock that it is reckoned from were set.
func TestMySQLClock(t *testing.T) {
	t.Parallel()
	c := clocked(t, "mysql", nil)
	db := sqlAt(t, c, 0)
	defer db.Close()
	now := func() int64 {
		t.Helper()
		var seconds int64
		if err := db.QueryRowContext(t.Context(), "SELECT UNIX_TIMESTAMP(NOW(6)) DIV 1").Scan(&seconds); err != nil {
			t.Fatal(err)
		}
		return seconds - time.Now().Unix()
	}
	setClock(t, c, time.Hour)
	if ahead := now(); ahead < 3590 || ahead > 3600 {
		t.Errorf("an hour ahead it is %d s ahead", ahead)
	}
	holder, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	getLock(t, holder, 1)
	waiter, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer waiter.Close()
	getLock(t, waiter, 0) // after its second, not after an hour
	setClock(t, c, -time.Hour)
	if ahead := now(); ahead < -3610 || ahead > -3590 {
		t.Errorf("an hour behind it is %d s ahead", ahead)
	}
	getLock(t, waiter, 0)
	setClock(t, c, 0)
	if ahead := now(); ahead < -5 || ahead > 5 {
		t.Errorf("set right it is %d s ahead", ahead)
	}
	if err := c.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	if got := counters(t, c); got["com_select"] != 6 {
		t.Errorf("%d selects, of which three asked for the time and three for the lock", got["com_select"])
	}
}

// TestClocksWithoutEffect: servers that use another clock keep their time, and the
// error is ErrUnsupported where the clock cannot be set.
func TestClocksWithoutEffect(t *testing.T) {
	t.Parallel()
	t.Run("memcached", func(t *testing.T) {
		t.Parallel()
		c := clocked(t, "memcached", nil)
		talk(t, c, "add lock 0 10 1\r\n1\r\n", "STORED")
		setClock(t, c, time.Minute)
		talk(t, c, "add lock 0 10 1\r\n1\r\n", "NOT_STORED")
		setClock(t, c, 0)
		if err := c.Healthy(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("zookeeper", func(t *testing.T) {
		t.Parallel()
		c := clocked(t, "zookeeper", clustertest.FastZooKeeper())
		conn := openZooKeeper(t, c.Addresses())
		defer conn.Close()
		session := conn.SessionID()
		setClock(t, c, time.Hour)
		if _, err := conn.Sync("/"); err != nil || conn.SessionID() != session {
			t.Errorf("a session through a jump: %v", err)
		}
		setClock(t, c, 0)
		if err := c.Healthy(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("etcd", func(t *testing.T) {
		t.Parallel()
		c := clocked(t, "etcd", nil)
		if _, err := c.SetClock(t.Context(), 0, time.Hour); !errors.Is(err, cluster.ErrUnsupported) || !strings.Contains(err.Error(), "monotonic") {
			t.Errorf("the clock of etcd: %v", err)
		}
	})
	t.Run("not asked for", func(t *testing.T) {
		t.Parallel()
		c := clustertest.Start(t, "redis", "single")
		_, err := c.SetClock(t.Context(), 0, time.Hour)
		if can := c.Can("clock"); !errors.Is(err, cluster.ErrUnsupported) || !errors.Is(can, cluster.ErrUnsupported) {
			t.Errorf("a clock without Spec.Clock: %v, %v", err, can)
		}
		if how, err := c.SetClock(t.Context(), 0, 0); err != nil {
			t.Errorf("a clock that was never wrong: %q, %v", how, err)
		}
		if _, err := c.SetClock(t.Context(), 1, time.Hour); !errors.Is(err, cluster.ErrSpec) {
			t.Errorf("the clock of a node that is not there: %v", err)
		}
	})
}
