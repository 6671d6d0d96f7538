package mysql_test

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// bench is a recipe on a server of its own, seen from outside and from inside.
type bench struct {
	recipe  impls.Recipe
	cfg     impls.Config
	db      *sql.DB
	cluster *cluster.Cluster
}

func newBench(t *testing.T, id string, ttl time.Duration) bench {
	t.Helper()
	c := clustertest.Start(t, "mysql", "single")
	return bench{recipe(t, id), recipetest.Config(c.Addresses(), c.Account(), ttl), admin(t, c), c}
}

func (b bench) open(t *testing.T, change ...func(*impls.Config)) impls.Client {
	t.Helper()
	return recipetest.Open(t, b.recipe, b.cfg, change...)
}

// mortal opens a client that the test closes itself, as if it died.
func (b bench) mortal(t *testing.T) impls.Client {
	t.Helper()
	cfg := b.cfg
	cfg.Wait = impls.NewUniform(0, 0, 0)
	c, err := b.recipe.Open(t.Context(), cfg)
	recipetest.WantOutcome(t, "open", err, nil)
	return c
}

func (b bench) keys(t *testing.T, n int) (keys []string) {
	t.Helper()
	for range n {
		keys = append(keys, recipetest.NewKey())
	}
	recipetest.Prepare(t, b.recipe, b.cfg, keys...)
	return keys
}

func (b bench) key(t *testing.T) string {
	t.Helper()
	return b.keys(t, 1)[0]
}

// count asks for one number.
func (b bench) count(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	if err := b.db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// running counts the statements like pattern that the server runs now.
func (b bench) running(t *testing.T, pattern string) int {
	t.Helper()
	return b.count(t, "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE ? AND id <> CONNECTION_ID()", pattern)
}

// connections counts those of all clients.
func (b bench) connections(t *testing.T) int {
	t.Helper()
	return b.count(t, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = ? AND id <> CONNECTION_ID() AND command <> 'Daemon'", b.cfg.Account.Database)
}

func hold(t *testing.T, c impls.Client, key string) impls.Hold {
	t.Helper()
	h, err := c.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try a key that should be free", err, nil)
	return h
}

func busy(t *testing.T, c impls.Client, key string) {
	t.Helper()
	_, err := c.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try a key that should be taken", err, impls.ErrBusy)
}

func release(t *testing.T, h impls.Hold, want error) {
	t.Helper()
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), want)
}

// granted is what a call that waits came to.
type granted struct {
	hold impls.Hold
	err  error
}

func acquire(ctx context.Context, c impls.Client, key string) <-chan granted {
	got := make(chan granted, 1)
	go func() {
		h, err := c.Acquire(ctx, key, recipetest.NewAttempt())
		got <- granted{h, err}
	}()
	return got
}

// replies is a network that loses, once armed, the answer to the first
// statement with the text: the server has carried it out, and the connection
// ends.
type replies struct{ lose atomic.Pointer[string] }

func (r *replies) arm(text string) { r.lose.Store(&text) }

func (r *replies) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	return &replyConn{Conn: c, replies: r}, err
}

type replyConn struct {
	net.Conn
	*replies
	lost atomic.Bool
}

func (c *replyConn) Write(p []byte) (int, error) {
	if text := c.lose.Load(); text != nil && bytes.Contains(p, []byte(*text)) {
		c.lose.Store(nil)
		c.lost.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *replyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && c.lost.Load() {
		c.Conn.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// lockRow has tx lock the one row that the query finds.
func (b bench) lockRow(t *testing.T, tx *sql.Tx, query string, args ...any) {
	t.Helper()
	var id int
	if err := tx.QueryRowContext(t.Context(), query, args...).Scan(&id); err != nil {
		t.Fatal(err)
	}
}

// status is one of the server's counters.
func (b bench) status(t *testing.T, name string) (n int) {
	t.Helper()
	var as string
	if err := b.db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE '"+name+"'").Scan(&as, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
