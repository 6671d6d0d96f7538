package cluster_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// sqlAt logs in to a node as clients do.
func sqlAt(t *testing.T, c *cluster.Cluster, node int) *sql.DB {
	t.Helper()
	return sqlAs(t, c, node, c.Account())
}

func sqlAs(t *testing.T, c *cluster.Cluster, node int, account impls.Account) *sql.DB {
	t.Helper()
	cfg := mysqldriver.NewConfig()
	cfg.User, cfg.Passwd, cfg.DBName, cfg.Net, cfg.Addr = account.User, account.Password, account.Database, "tcp", c.Addresses()[node]
	cfg.Logger = quiet{} // what goes wrong comes back as an error
	connector, err := mysqldriver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

func write(t *testing.T, c *cluster.Cluster, node, value int) error {
	t.Helper()
	db := sqlAt(t, c, node)
	defer db.Close()
	_, err := db.ExecContext(t.Context(), "INSERT INTO r (a) VALUES (?)", value)
	return err
}

// arrives waits until a node has a row.
func arrives(t *testing.T, c *cluster.Cluster, node, value int) {
	t.Helper()
	db := sqlAt(t, c, node)
	await(t, fmt.Sprintf("row %d at node %d", value, node), func() error {
		var got int
		return db.QueryRowContext(t.Context(), "SELECT a FROM r WHERE a = ?", value).Scan(&got)
	})
}

// administer does at a node what clients may not.
func administer(t *testing.T, c *cluster.Cluster, node int, statement string) {
	t.Helper()
	db := sqlAs(t, c, node, impls.Account{User: "root"})
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// pair starts a primary and its replica, with a table.
func pair(t *testing.T, settings map[string]string) *cluster.Cluster {
	t.Helper()
	c := clustertest.Start(t, "mysql", "replicated", settings)
	if _, err := sqlAt(t, c, 0).ExecContext(t.Context(), "CREATE TABLE r (a INT PRIMARY KEY) ENGINE=InnoDB"); err != nil {
		t.Fatal(err)
	}
	if err := write(t, c, 0, 1); err != nil {
		t.Fatal(err)
	}
	arrives(t, c, 1, 1)
	return c
}

func refused(t *testing.T, c *cluster.Cluster, node int) {
	t.Helper()
	err := write(t, c, node, 99)
	if e, ok := errors.AsType[*mysqldriver.MySQLError](err); !ok || e.Number != 1290 {
		t.Errorf("a write to node %d: %v, want a refusal", node, err)
	}
}

// TestMySQLReplicated: a replica has what the primary has, and clients write to
// the primary only.
func TestMySQLReplicated(t *testing.T) {
	t.Parallel()
	c := pair(t, nil)
	info := c.Info()
	t.Logf("ready after %d ms: %v; %s", info.ReadyMS, info.Settings, info.Durability)
	if len(c.Addresses()) != 2 || len(c.Directory()) != 0 {
		t.Errorf("nodes %v", c.Addresses())
	}
	for name, want := range map[string]string{
		"read_only": "OFF | ON", "gtid_strict_mode": "ON", "slave_net_timeout": "4", "rpl_semi_sync_master_enabled": "OFF", "log_bin": "ON",
	} {
		if info.Settings[name] != want {
			t.Errorf("%s reads back %q, want %q", name, info.Settings[name], want)
		}
	}
	if node, err := c.Leader(t.Context()); err != nil || node != 0 {
		t.Errorf("node %d leads at first, %v", node, err)
	}
	refused(t, c, 1)
	before, err := c.Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // ours do not count
		healthy(t, c)
	}
	if err := write(t, c, 0, 2); err != nil {
		t.Fatal(err)
	}
	after, err := c.Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !after[1].Follower || after[0].Follower || len(after[1].Counters) != 0 {
		t.Errorf("%+v is the replica", after[1])
	}
	for name, want := range map[string]int64{"com_insert": 1, "com_select": 0, "com_set_option": 0} {
		if got := after[0].Counters[name] - before[0].Counters[name]; got != want {
			t.Errorf("%s grew by %d, want %d", name, got, want)
		}
	}
}

// TestMySQLSemiSync: commits wait for the replica, by a setting.
func TestMySQLSemiSync(t *testing.T) {
	t.Parallel()
	c := pair(t, map[string]string{"semi-sync": "on", "rpl_semi_sync_master_timeout": "2500"})
	for name, want := range map[string]string{
		"rpl_semi_sync_master_enabled": "ON", "rpl_semi_sync_slave_enabled": "ON",
		"rpl_semi_sync_master_timeout": "2500", "rpl_semi_sync_master_wait_point": "AFTER_SYNC",
	} {
		if got := c.Info().Settings[name]; got != want {
			t.Errorf("%s reads back %q, want %q", name, got, want)
		}
	}
	healthy(t, c)
	for _, setting := range []string{"OFF", "ON"} {
		administer(t, c, 0, "SET GLOBAL rpl_semi_sync_master_enabled="+setting)
		await(t, "semi-synchronous "+setting, func() error {
			if err := c.Healthy(t.Context()); (err == nil) != (setting == "ON") || err != nil && !strings.Contains(err.Error(), "without waiting") {
				return fmt.Errorf("healthy: %w", err)
			}
			return nil
		})
	}
	run := clustertest.Run(t)
	_, err := cluster.Start(t.Context(), run, cluster.Spec{Backend: "mysql", Topology: "replicated", Settings: map[string]string{"semi-sync": "perhaps"}})
	if !errors.Is(err, cluster.ErrSpec) || !strings.Contains(err.Error(), "perhaps") {
		t.Errorf("semi-sync perhaps: %v", err)
	}
}

// TestMySQLPromote: after the kill of the primary the replica takes its place,
// with what it has received, and the old one follows it when it is back.
func TestMySQLPromote(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := pair(t, nil)
	if err := c.Promote(ctx, 1); !errors.Is(err, cluster.ErrNotFenced) {
		t.Errorf("promotion beside a living primary: %v", err)
	}
	if node, err := c.Leader(ctx); err != nil || node != 0 {
		t.Errorf("node %d leads, %v", node, err)
	}
	for i := 2; i < 50; i++ {
		if err := write(t, c, 0, i); err != nil {
			t.Fatal(err)
		}
	}
	arrives(t, c, 1, 49)
	if err := c.Kill(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if node, err := c.Leader(ctx); !errors.Is(err, cluster.ErrNoLeader) {
		t.Errorf("node %d leads, %v", node, err)
	}
	if err := c.Promote(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if node, err := c.Leader(ctx); err != nil || node != 1 {
		t.Errorf("node %d leads, %v", node, err)
	}
	if err := write(t, c, 1, 100); err != nil {
		t.Error(err)
	}
	if err := c.Restart(ctx, 0); err != nil {
		t.Fatal(err)
	}
	arrives(t, c, 0, 100)
	refused(t, c, 0)
	healthy(t, c)

	// And back again, as for maintenance.
	if err := c.Fence(ctx, 1); err != nil {
		t.Fatal(err)
	}
	refused(t, c, 1)
	if err := c.Promote(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := write(t, c, 0, 101); err != nil {
		t.Error(err)
	}
	arrives(t, c, 1, 101)
	healthy(t, c)
}

// TestMySQLRestart: a primary that was not replaced takes writes again, and its
// replica follows it again; so does a replica that was away.
func TestMySQLRestart(t *testing.T) {
	t.Parallel()
	c := pair(t, nil)
	for i := range 2 {
		if err := c.Kill(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		if err := c.Healthy(t.Context()); !errors.Is(err, cluster.ErrServer) {
			t.Errorf("healthy with node %d dead: %v", i, err)
		}
		if err := c.Restart(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		if err := write(t, c, 0, 10+i); err != nil {
			t.Fatal(err)
		}
		arrives(t, c, 1, 10+i)
		healthy(t, c)
	}
	if err := c.Fence(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Leader(t.Context()); !errors.Is(err, cluster.ErrNoLeader) {
		t.Errorf("a fenced one leads: %v", err)
	}
	if err := c.Promote(t.Context(), 0); err != nil {
		t.Errorf("open it again: %v", err)
	}
	healthy(t, c)
}

// TestMySQLReceived: writes that the replica has received but not yet applied are
// not lost with the primary, and a replica that does not follow is not healthy.
func TestMySQLReceived(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := pair(t, nil)
	administer(t, c, 1, "STOP SLAVE SQL_THREAD")
	if err := c.Healthy(ctx); !errors.Is(err, cluster.ErrServer) || !strings.Contains(err.Error(), "does not follow") {
		t.Errorf("healthy: %v", err)
	}
	for i := 2; i < 200; i++ {
		if err := write(t, c, 0, i); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "all to be received", func() error { return received(t, c, 1, 0) })
	if err := c.Kill(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Promote(ctx, 1); !errors.Is(err, cluster.ErrServer) {
		t.Errorf("promotion of one that applies nothing: %v", err)
	}
	administer(t, c, 1, "START SLAVE SQL_THREAD")
	if err := c.Promote(ctx, 1); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := sqlAt(t, c, 1).QueryRowContext(ctx, "SELECT COUNT(*) FROM r").Scan(&rows); err != nil || rows != 199 {
		t.Errorf("%d rows, %v; want 199", rows, err)
	}
}

// TestMySQLPromoteRestarted: a replica that was away, and came back only when the
// primary was dead, can be promoted, too.
func TestMySQLPromoteRestarted(t *testing.T) {
	t.Parallel()
	c := pair(t, nil)
	for _, i := range []int{1, 0} {
		if err := c.Kill(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Promote(t.Context(), 1); !errors.Is(err, cluster.ErrServer) {
		t.Errorf("promotion of a dead one: %v", err)
	}
	if err := c.Restart(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	refused(t, c, 1)
	if err := c.Promote(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	arrives(t, c, 1, 1)
	if err := write(t, c, 1, 2); err != nil {
		t.Error(err)
	}
	if err := c.Restart(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	arrives(t, c, 0, 2)
	healthy(t, c)
}

// TestMySQLSplit: a controller that takes a paused primary for dead has two that
// take writes. Only the old one has the writes that it took then, and it reports
// this when it is to follow.
func TestMySQLSplit(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := pair(t, nil)
	if err := c.Pause(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Promote(ctx, 1); !errors.Is(err, cluster.ErrNotFenced) {
		t.Errorf("promotion beside a paused primary: %v", err)
	}
	if err := c.PromoteUnfenced(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if node, err := c.Leader(ctx); err != nil || node != 1 {
		t.Errorf("node %d leads, %v", node, err)
	}
	if err := c.Resume(ctx, 0); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := write(t, c, i, 50+i); err != nil {
			t.Errorf("a write to node %d: %v", i, err)
		}
	}
	if node, err := c.Leader(ctx); !errors.Is(err, cluster.ErrNoLeader) || !strings.Contains(err.Error(), "both") {
		t.Errorf("node %d leads, %v", node, err)
	}
	if err := c.Fence(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := c.Promote(ctx, 0); !errors.Is(err, cluster.ErrServer) || !strings.Contains(err.Error(), "it has no primary") {
		t.Errorf("promotion of one that never followed: %v", err)
	}
	if err := c.Promote(ctx, 1); err != nil {
		t.Errorf("open it again: %v", err)
	}
	if err := c.Kill(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Restart(ctx, 0); err != nil {
		t.Fatal(err)
	}
	refused(t, c, 0)
	await(t, "the reason why it does not follow", func() error {
		err := c.Healthy(ctx)
		if errors.Is(err, cluster.ErrServer) && strings.Contains(err.Error(), "GTID") {
			return nil
		}
		return fmt.Errorf("healthy: %w", err)
	})
}

// received is nil when a replica has read all that the primary has logged.
func received(t *testing.T, c *cluster.Cluster, replica, primary int) error {
	t.Helper()
	r, p := rowAt(t, c, replica, "SHOW SLAVE STATUS"), rowAt(t, c, primary, "SHOW MASTER STATUS")
	if r["Read_Master_Log_Pos"] != p["Position"] || r["Master_Log_File"] != p["File"] {
		return fmt.Errorf("received %s of %s", r["Read_Master_Log_Pos"], p["Position"])
	}
	return nil
}

// rowAt asks an administrator's connection for one row, by column.
func rowAt(t *testing.T, c *cluster.Cluster, node int, query string) map[string]string {
	t.Helper()
	db, err := sql.Open("mysql", "root@tcp("+c.Nodes()[node].Address+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil || !rows.Next() {
		t.Fatalf("%s: no row, %v", query, err)
	}
	values := make([]sql.NullString, len(names))
	into := make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		t.Fatal(err)
	}
	row := map[string]string{}
	for i, name := range names {
		row[name] = values[i].String
	}
	return row
}
