package postgres_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

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
	key := b.key(t)
	var wire breakable
	client := b.open(t, func(cfg *impls.Config) { cfg.Dial = wire.dial })

	locker := b.inDatabase(t)
	defer locker.Close(context.Background())
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
	blocked := func() int {
		return b.count(t, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'lockbench' AND wait_event_type = 'Lock'")
	}
	await(t, "the acquire waits in the server", func() bool { return blocked() == 1 })
	wire.breakAll()
	recipetest.WantOutcome(t, "acquire cut off", <-got, impls.ErrUnknown)
	// The row is not the attempt's, so that the clean-up itself waits for no lock.
	recipetest.WantOutcome(t, "clean up", recipetest.CleanUp(t, client, key, attempt), impls.ErrLost)
	if n := blocked(); n != 0 {
		t.Errorf("%d statements are left in the server after the clean-up", n)
	}
	if _, err := locker.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	recipetest.WantOutcome(t, "release", hold(t, b.open(t), key).Release(t.Context()), nil)
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
