package cluster_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// table makes the table that the tests write to, at a primary that is followed.
func table(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	if _, err := sqlAt(t, c, 0).ExecContext(t.Context(), "CREATE TABLE r (a INT PRIMARY KEY, b VARBINARY(9), c TIMESTAMP(6) NULL, d TEXT) ENGINE=InnoDB"); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlAt(t, c, 0).ExecContext(t.Context(), "INSERT INTO r VALUES (1, X'00FF9C27', '2020-02-02 02:02:02.020202', 'ä€'), (2, NULL, NULL, '')"); err != nil {
		t.Fatal(err)
	}
	arrives(t, c, 1, 2)
}

// rowsOf is all that a node has of the table.
func rowsOf(t *testing.T, c *cluster.Cluster, node int) string {
	t.Helper()
	var all string
	const query = "SELECT GROUP_CONCAT(CONCAT_WS('/', a, HEX(b), c, d) ORDER BY a) FROM r"
	if err := sqlAt(t, c, node).QueryRowContext(t.Context(), query).Scan(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// lockedRow is a transaction that holds a row at a node, for which another waits.
func lockedRow(t *testing.T, c *cluster.Cluster, node, value int) *sql.Tx {
	t.Helper()
	held, err := sqlAt(t, c, node).BeginTx(t.Context(), nil)
	if err == nil {
		_, err = held.ExecContext(t.Context(), "INSERT INTO r (a) VALUES (?)", value)
	}
	if err != nil {
		t.Fatal(err)
	}
	waiter, waits := sqlAt(t, c, node), make(chan error, 1)
	go func() {
		_, err := waiter.ExecContext(t.Context(), "INSERT INTO r (a) VALUES (?)", value)
		waits <- err
	}()
	t.Cleanup(func() {
		if err := <-waits; err == nil {
			t.Error("who waited for the row at the old primary wrote it")
		}
	})
	await(t, "one that waits for the row", func() error {
		db := sqlAs(t, c, node, impls.Account{User: "root"})
		defer db.Close()
		var name string
		var waits int
		err := db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'").Scan(&name, &waits)
		if err == nil && waits != 1 {
			err = fmt.Errorf("%d wait", waits)
		}
		return err
	})
	return held
}

// decided reports whether the keeper has done what is described.
func decided(c *cluster.Cluster, what string) bool {
	for _, d := range c.Decisions() {
		if strings.Contains(d.What, what) && !d.At.IsZero() {
			return true
		}
	}
	return false
}

// TestKeeper: the replica accepts writes when the primary is dead, paused or cut
// off, and the old primary becomes its replica when it is back, without the writes
// that it accepted beside the new one.
func TestKeeper(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		how      string
		settings map[string]string
	}{
		{"kill", map[string]string{"semi-sync": "on", "rpl_semi_sync_master_timeout": "500"}},
		{"pause", nil},
		{"cut", nil},
	} {
		t.Run(tt.how, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			logs := filepath.Join(t.TempDir(), "logs")
			c := clustertest.StartSpec(t, cluster.Spec{
				Backend: "mysql", Topology: "replicated", Settings: tt.settings, LogDir: logs,
				Keeper: true, Links: tt.how == "cut",
			})
			t.Logf("ready after %d ms", c.Info().ReadyMS)
			if got := c.Info().Settings["keeper poll"]; got != "200ms x 3" {
				t.Errorf("keeper poll is %q", got)
			}
			table(t, c)
			held := lockedRow(t, c, 0, 9)
			back := func() error { return nil }
			switch tt.how {
			case "kill":
				if err := c.Kill(ctx, 0); err != nil {
					t.Fatal(err)
				}
				back = func() error { return c.Restart(ctx, 0) }
			case "pause":
				if err := c.Pause(ctx, 0); err != nil {
					t.Fatal(err)
				}
				back = func() error { return c.Resume(ctx, 0) }
			case "cut":
				cut(t, c, "a", []int{0}, cutOff)
				back = func() error { lift(t, c, "a"); return nil }
			}
			leads(t, c, otherThan(0))
			add := func(node, value int) {
				t.Helper()
				if err := write(t, c, node, value); err != nil {
					t.Errorf("a write to node %d: %v", node, err)
				}
			}
			add(1, 10)
			if tt.how == "cut" {
				add(0, 11) // it has not been fenced
				add(0, 10)
			}
			if err := back(); err != nil {
				t.Fatal(err)
			}
			healthy(t, c)
			leads(t, c, func(node int) bool { return node == 1 })
			refused(t, c, 0)
			if err := held.Commit(); err == nil {
				t.Error("what was held at the old primary was committed there")
			}
			add(1, 12)
			arrives(t, c, 0, 12)
			if a, b := rowsOf(t, c, 0), rowsOf(t, c, 1); a != b || !strings.Contains(a, "1/00FF9C27/2020-02-02 02:02:02.020202/ä€,2/,10,12") {
				t.Errorf("the old primary has %s, the new one %s", a, b)
			}
			if !decided(c, "promoted mysql-2: mysql-1 was silent 3 times") {
				t.Errorf("decisions: %v", c.Decisions())
			}
			if lost := decided(c, "are lost"); lost != (tt.how == "cut") {
				t.Errorf("writes were lost: %t; %v", lost, c.Decisions())
			}
			// And the other way round, from where the copy has brought it.
			if err := c.Kill(ctx, 1); err != nil {
				t.Fatal(err)
			}
			leads(t, c, otherThan(1))
			add(0, 13)
			if err := c.Restart(ctx, 1); err != nil {
				t.Fatal(err)
			}
			arrives(t, c, 1, 13)
			healthy(t, c)
			if a, b := rowsOf(t, c, 0), rowsOf(t, c, 1); a != b {
				t.Errorf("node 0 has %s, node 1 %s", a, b)
			}
			decisions := c.Decisions()
			if err := c.Stop(ctx); err != nil {
				t.Error(err)
			}
			log, err := os.ReadFile(filepath.Join(logs, "keeper.log"))
			for _, d := range decisions {
				if !strings.Contains(string(log), d.What) {
					t.Errorf("the log lacks %q, %v", d.What, err)
				}
			}
			t.Logf("%s", log)
		})
	}
}

// TestKeeperLeavesAlone: healthy servers keep their roles, also those that an
// operator has changed.
func TestKeeperLeavesAlone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := clustertest.StartSpec(t, cluster.Spec{Backend: "mysql", Topology: "replicated", Keeper: true})
	table(t, c)
	if err := c.Fence(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Promote(ctx, 1); err != nil {
		t.Fatal(err)
	}
	healthy(t, c)
	leads(t, c, func(node int) bool { return node == 1 })
	if err := c.Kill(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Restart(ctx, 0); err != nil {
		t.Fatal(err)
	}
	healthy(t, c)
	if d := c.Decisions(); len(d) != 0 {
		t.Errorf("decisions: %v", d)
	}
	run := clustertest.Run(t)
	for _, spec := range []cluster.Spec{{Backend: "redis", Topology: "replicated", Keeper: true}, {Backend: "mysql", Keeper: true}} {
		if _, err := cluster.Start(ctx, run, spec); !errors.Is(err, cluster.ErrSpec) {
			t.Errorf("a keeper of a %s %s: %v", spec.Backend, spec.Topology, err)
		}
	}
	if d := clustertest.Start(t, "memcached", "single").Decisions(); d != nil {
		t.Errorf("decisions without a keeper: %v", d)
	}
}

// TestKeeperCannot: without a node to promote the keeper goes on asking, and finds
// the primary again.
func TestKeeperCannot(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	logs := t.TempDir()
	c := clustertest.StartSpec(t, cluster.Spec{Backend: "mysql", Topology: "replicated", Keeper: true, LogDir: logs})
	for _, node := range []int{1, 0} {
		if err := c.Kill(ctx, node); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "a note that no replica can be promoted", func() error {
		log, err := os.ReadFile(filepath.Join(logs, "keeper.log"))
		if err == nil && !strings.Contains(string(log), "mysql-2 cannot take the place of mysql-1") {
			err = fmt.Errorf("it says %s", log)
		}
		return err
	})
	for _, node := range []int{0, 1} {
		if err := c.Restart(ctx, node); err != nil {
			t.Fatal(err)
		}
	}
	healthy(t, c)
	leads(t, c, func(node int) bool { return node == 0 })
}
