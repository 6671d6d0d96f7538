package postgres_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// A lease that is over can be neither extended nor released, though no other
// client has taken the row.
func TestLeaseOver(t *testing.T) {
	b := newBench(t, "postgres/lease-row", "single", time.Millisecond)
	key := b.key(t)
	client := b.open(t)
	for doing, call := range map[string]func(impls.Hold) error{
		"extend":   func(h impls.Hold) error { return h.Extend(t.Context()) },
		"release":  func(h impls.Hold) error { return h.Release(t.Context()) },
		"clean up": func(h impls.Hold) error { return client.Cleanup(t.Context(), key, h.Attempt()) },
	} {
		h := hold(t, client, key)
		await(t, "the lease is over", func() bool {
			return b.rows(t, "SELECT count(*) FROM lockbench_lease WHERE name = $1 AND expires < clock_timestamp()", key) == 1
		})
		recipetest.WantOutcome(t, doing, call(h), impls.ErrLost)
		if n := b.rows(t, "SELECT count(*) FROM lockbench_lease WHERE name = $1 AND expires >= clock_timestamp()", key); n != 0 {
			t.Errorf("%s revived the lease", doing)
		}
	}
}

// rows counts in the clients' database.
func (b bench) rows(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	conn := b.inDatabase(t)
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A statement that the server has not finished when its client gives up must not
// take effect after the clean-up.
func TestLateStatement(t *testing.T) {
	b := newBench(t, "postgres/lease-row", "single", 10*time.Second)
	late := b.leaveLate(t)
	// The row is not the attempt's, so that the clean-up itself waits for no lock.
	recipetest.WantOutcome(t, "clean up", recipetest.CleanUp(t, late.client, late.key, late.attempt), impls.ErrLost)
	if n := b.blocked(t); n != 0 {
		t.Errorf("%d statements are left in the server after the clean-up", n)
	}
	late.unlock(t)
	recipetest.WantOutcome(t, "release", hold(t, b.open(t), late.key).Release(t.Context()), nil)
}

// Behind a pooler such a statement cannot be ended: until it has had its effect
// the clean-up is in doubt.
func TestLateStatementBehindAPooler(t *testing.T) {
	b := newBench(t, "postgres/lease-row", "pooled", time.Minute)
	late := b.leaveLate(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := late.client.Cleanup(ctx, late.key, late.attempt); impls.Definite(err) {
		t.Errorf("clean up while the statement waits: %v is definite", err)
	}
	late.unlock(t)
	if err := recipetest.CleanUp(t, late.client, late.key, late.attempt); err != nil {
		recipetest.WantOutcome(t, "clean up", err, impls.ErrLost)
	}
	b.wantFree(t, late.key)
}

// A statement that reaches the pooler only after the clean-up has no effect.
func TestStatementSentAfterTheCleanup(t *testing.T) {
	for id, want := range map[string]error{"postgres/lease-row": impls.ErrLost, "postgres/advisory": impls.ErrUnknown} {
		t.Run(id, func(t *testing.T) {
			b := newBench(t, id, "pooled", time.Minute)
			key := b.key(t)
			var wire delayed
			client := b.open(t, func(cfg *impls.Config) { cfg.Dial = wire.dial })
			wire.hold.Store(true)
			attempt := recipetest.NewAttempt()
			_, err := client.Acquire(t.Context(), key, attempt)
			recipetest.WantOutcome(t, "acquire", err, impls.ErrUnknown)
			recipetest.WantOutcome(t, "clean up", client.Cleanup(t.Context(), key, attempt), want)
			wire.deliver(t)
			if want == impls.ErrLost {
				b.wantFree(t, key)
			} else if n := b.count(t, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"); n != 1 {
				t.Errorf("%d sessions hold an advisory lock after the late statement", n)
			}
		})
	}
}

// wantFree fails unless a client is granted the key at once.
func (b bench) wantFree(t *testing.T, key string) {
	t.Helper()
	h, err := b.open(t).TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try after the clean-up", err, nil)
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
}

// lateStatement is an acquire whose client gave its connection up while the
// statement waited in the server for a row.
type lateStatement struct {
	client  impls.Client
	key     string
	attempt impls.Attempt
	locker  *pgx.Conn // has the row
}

func (l lateStatement) unlock(t *testing.T) {
	t.Helper()
	if _, err := l.locker.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
}

func (b bench) leaveLate(t *testing.T) lateStatement {
	t.Helper()
	key := b.key(t)
	var wire breakable
	client := b.open(t, func(cfg *impls.Config) { cfg.Dial = wire.dial })

	locker := b.inDatabase(t)
	t.Cleanup(func() { locker.Close(context.Background()) })
	if _, err := locker.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	if _, err := locker.Exec(t.Context(), "SELECT * FROM lockbench_lease WHERE name = $1 FOR UPDATE", key); err != nil {
		t.Fatal(err)
	}
	attempt, got := recipetest.NewAttempt(), make(chan error)
	go func() {
		_, err := client.Acquire(t.Context(), key, attempt)
		got <- err
	}()
	await(t, "the acquire waits in the server", func() bool { return b.blocked(t) == 1 })
	wire.breakAll()
	recipetest.WantOutcome(t, "acquire cut off", <-got, impls.ErrUnknown)
	return lateStatement{client, key, attempt, locker}
}

// blocked counts the clients' statements that wait for a row.
func (b bench) blocked(t *testing.T) int {
	t.Helper()
	return b.count(t, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'lockbench' AND wait_event_type = 'Lock'")
}

// Behind a pooler each statement is a transaction, and the row is enough.
func TestLeaseRowBehindAPooler(t *testing.T) {
	b := newBench(t, "postgres/lease-row", "pooled", 10*time.Second)
	key := b.key(t)
	first, second := b.open(t), b.open(t)
	h := hold(t, first, key)
	_, err := second.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try", err, impls.ErrBusy)
	recipetest.WantOutcome(t, "extend", h.Extend(t.Context()), nil)
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
	next := hold(t, second, key)
	if next.Fence() <= h.Fence() {
		t.Errorf("the fence went from %d to %d", h.Fence(), next.Fence())
	}
	recipetest.WantOutcome(t, "release", next.Release(t.Context()), nil)
}

// breakable is a dialer whose connections can be broken.
type breakable struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (b *breakable) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns = append(b.conns, conn)
	return conn, err
}

func (b *breakable) breakAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range b.conns {
		conn.Close()
	}
	b.conns = nil
}

// delayed is a dialer. Once hold is set, the connections dialled before break for
// their client at its next request, which arrives only when it is delivered.
type delayed struct {
	hold atomic.Bool
	mu   sync.Mutex
	conn net.Conn
	kept []byte
}

func (d *delayed) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil || d.hold.Load() {
		return conn, err
	}
	return &delayedConn{Conn: conn, by: d}, nil
}

// delayedConn is a connection of a delayed dialer.
type delayedConn struct {
	net.Conn
	by *delayed
}

func (c *delayedConn) Write(p []byte) (int, error) {
	if !c.by.hold.Load() {
		return c.Conn.Write(p)
	}
	c.by.mu.Lock()
	defer c.by.mu.Unlock()
	if c.by.conn == nil {
		c.by.conn, c.by.kept = c.Conn, bytes.Clone(p)
	}
	return len(p), nil
}

func (c *delayedConn) Read(p []byte) (int, error) {
	if c.by.hold.Load() {
		return 0, io.EOF
	}
	return c.Conn.Read(p)
}

// Close keeps a connection open on which a request is still to be sent.
func (c *delayedConn) Close() error {
	c.by.mu.Lock()
	defer c.by.mu.Unlock()
	if c.by.conn == c.Conn {
		return nil
	}
	return c.Conn.Close()
}

// deliver sends what was kept, and waits for the answer.
func (d *delayed) deliver(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.conn.Close()
	if err := d.conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.conn.Write(d.kept); err != nil {
		t.Fatal(err)
	}
	for tag := make([]byte, 5); ; {
		if _, err := io.ReadFull(d.conn, tag); err != nil {
			t.Fatalf("the answer to the late statement: %v", err)
		}
		if _, err := io.CopyN(io.Discard, d.conn, int64(binary.BigEndian.Uint32(tag[1:]))-4); err != nil {
			t.Fatal(err)
		}
		if tag[0] == 'E' {
			t.Fatal("the late statement was refused")
		}
		if tag[0] == 'Z' { // ready for the next
			return
		}
	}
}
