package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/impls/postgres"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// bench is a recipe on servers, and an administrator's connection to the first.
type bench struct {
	recipe  impls.Recipe
	cfg     impls.Config
	admin   *pgx.Conn
	cluster *cluster.Cluster
}

func newBench(t *testing.T, id, topology string, ttl time.Duration) bench {
	t.Helper()
	c := clustertest.Start(t, "postgres", topology)
	cfg := recipetest.Config(c.Addresses(), c.Account(), ttl)
	cfg.Topology = topology
	return bench{recipetest.Find(t, postgres.Recipes(), id), cfg, administrator(t, c, 0), c}
}

// administrator connects to a node past any proxy.
func administrator(t *testing.T, c *cluster.Cluster, node int) *pgx.Conn {
	t.Helper()
	conn := connect(t, c, node, "postgres")
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func connect(t *testing.T, c *cluster.Cluster, node int, database string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", c.Nodes()[node].Address, database))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// inDatabase is an administrator's connection to the clients' database.
func (b bench) inDatabase(t *testing.T) *pgx.Conn {
	t.Helper()
	return connect(t, b.cluster, 0, b.cfg.Account.Database)
}

func (b bench) open(t *testing.T, change ...func(*impls.Config)) impls.Client {
	t.Helper()
	return recipetest.Open(t, b.recipe, b.cfg, change...)
}

func (b bench) key(t *testing.T) string {
	t.Helper()
	key := recipetest.NewKey()
	recipetest.Prepare(t, b.recipe, b.cfg, key)
	return key
}

// count asks the server for a number.
func (b bench) count(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	if err := b.admin.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// waiting counts the sessions that wait for an advisory lock.
func (b bench) waiting(t *testing.T) int {
	t.Helper()
	return b.count(t, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
}

func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func hold(t *testing.T, c impls.Client, key string) impls.Hold {
	t.Helper()
	h, err := c.Acquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "acquire", err, nil)
	return h
}
