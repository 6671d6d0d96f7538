package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/impls/mysql"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
	"github.com/lockbench/lockbench/internal/faultnet"
)

func admin(t *testing.T, c *cluster.Cluster) *sql.DB { return adminOf(t, c, 0) }

// adminOf is an operator's way to a node.
func adminOf(t *testing.T, c *cluster.Cluster, node int) *sql.DB {
	t.Helper()
	conf := driver.NewConfig()
	conf.Net, conf.Addr = "tcp", c.Addresses()[node]
	conf.User, conf.Passwd, conf.DBName = c.Account().User, c.Account().Password, c.Account().Database
	conf.InterpolateParams = true
	connector, err := driver.NewConnector(conf)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

func recipe(t *testing.T, id string) impls.Recipe {
	t.Helper()
	return recipetest.Find(t, mysql.Recipes(), id)
}

// holder asks which connection has a name: 0 is none.
func holder(t *testing.T, db *sql.DB, name string) int64 {
	t.Helper()
	var id sql.NullInt64
	if err := db.QueryRowContext(t.Context(), "SELECT IS_USED_LOCK(?)", name).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id.Int64
}

// await repeats cond until it holds.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

func TestGetLockConnections(t *testing.T) {
	c := clustertest.Start(t, "mysql", "single")
	db := admin(t, c)
	r := recipe(t, "mysql/get-lock")
	cfg := recipetest.Config(c.Addresses(), c.Account(), time.Second)

	t.Run("connection killed under a hold", func(t *testing.T) {
		key := recipetest.NewKey()
		a, b := recipetest.Open(t, r, cfg), recipetest.Open(t, r, cfg)
		h, err := a.Acquire(t.Context(), key, recipetest.NewAttempt())
		recipetest.WantOutcome(t, "acquire", err, nil)
		if _, err := db.ExecContext(t.Context(), "KILL ?", holder(t, db, key)); err != nil {
			t.Fatal(err)
		}
		next, err := b.Acquire(t.Context(), key, recipetest.NewAttempt())
		recipetest.WantOutcome(t, "acquire after the kill", err, nil)

		// The first answer may be open; the next must not be.
		if err := h.Release(t.Context()); err == nil {
			t.Fatal("released a lock that another holds")
		}
		select {
		case <-h.Lost():
		default:
			t.Error("the hold did not signal that its connection is gone")
		}
		recipetest.WantOutcome(t, "release again", h.Release(t.Context()), impls.ErrLost)
		recipetest.WantOutcome(t, "clean up", recipetest.CleanUp(t, a, key, h.Attempt()), impls.ErrLost)
		_, err = a.TryAcquire(t.Context(), key, recipetest.NewAttempt())
		recipetest.WantOutcome(t, "try", err, impls.ErrBusy)
		recipetest.WantOutcome(t, "release", next.Release(t.Context()), nil)
	})

	t.Run("a hold outlives every lease", func(t *testing.T) {
		cfg := cfg
		cfg.TTL = time.Millisecond
		key := recipetest.NewKey()
		a, b := recipetest.Open(t, r, cfg), recipetest.Open(t, r, cfg)
		h, err := a.Acquire(t.Context(), key, recipetest.NewAttempt())
		recipetest.WantOutcome(t, "acquire", err, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = b.Acquire(ctx, key, recipetest.NewAttempt())
		recipetest.WantOutcome(t, "acquire", err, impls.ErrFailed)
		if !h.LeaseEnd().IsZero() || !errors.Is(h.Extend(t.Context()), errors.ErrUnsupported) {
			t.Error("a lease where there is none")
		}
		recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
	})

	t.Run("cancelled waiter leaves the server", func(t *testing.T) {
		key := recipetest.NewKey()
		a, b := recipetest.Open(t, r, cfg), recipetest.Open(t, r, cfg)
		h, err := a.Acquire(t.Context(), key, recipetest.NewAttempt())
		recipetest.WantOutcome(t, "acquire", err, nil)
		// By its state: the statement remains listed for a moment after its answer.
		waiting := func() bool {
			var n int
			if err := db.QueryRowContext(t.Context(),
				"SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE ? AND state = 'User lock'", "SELECT GET_LOCK('"+key+"%").Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n > 0
		}
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error)
		go func() {
			_, err := b.Acquire(ctx, key, recipetest.NewAttempt())
			got <- err
		}()
		await(t, "the waiter is on the server", waiting)
		cancel()
		recipetest.WantOutcome(t, "cancelled acquire", <-got, impls.ErrFailed)
		if waiting() {
			t.Error("the waiter is still on the server")
		}
		recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
		if id := holder(t, db, key); id != 0 {
			t.Errorf("connection %d was granted the lock that no client wants", id)
		}
		h, err = b.Acquire(t.Context(), key, recipetest.NewAttempt())
		recipetest.WantOutcome(t, "acquire by the former waiter", err, nil)
		recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
	})

	t.Run("late kill", func(t *testing.T) {
		// The kill that ends a wait may come when the wait has just ended.
		key := recipetest.NewKey()
		a := recipetest.Open(t, r, cfg)
		for range 20 {
			h, err := a.Acquire(t.Context(), key, recipetest.NewAttempt())
			recipetest.WantOutcome(t, "acquire", err, nil)
			if _, err := db.ExecContext(t.Context(), "KILL QUERY ?", holder(t, db, key)); err != nil {
				t.Fatal(err)
			}
			recipetest.WantOutcome(t, "release after a kill of nothing", h.Release(t.Context()), nil)
		}
	})

	t.Run("keys that are no names", func(t *testing.T) {
		long := recipetest.NewKey() + strings.Repeat("/x", 40)
		for _, pair := range [][2]string{{"Upper", "upper"}, {long + "1", long + "2"}, {"a b", "a  b"}} {
			a, b := recipetest.Open(t, r, cfg), recipetest.Open(t, r, cfg)
			h, err := a.TryAcquire(t.Context(), pair[0], recipetest.NewAttempt())
			recipetest.WantOutcome(t, "try "+pair[0], err, nil)
			_, err = b.TryAcquire(t.Context(), pair[0], recipetest.NewAttempt())
			recipetest.WantOutcome(t, "try "+pair[0], err, impls.ErrBusy)
			other, err := b.TryAcquire(t.Context(), pair[1], recipetest.NewAttempt())
			recipetest.WantOutcome(t, "try "+pair[1], err, nil)
			recipetest.WantOutcome(t, "release", other.Release(t.Context()), nil)
			recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
		}
	})
}

// TestAbandonedStatement: a statement that the server has not finished when its client
// gives up must not take effect after the clean-up.
func TestAbandonedStatement(t *testing.T) {
	b := newBench(t, "mysql/lease-row", 10*time.Second)
	key := b.key(t)
	other := b.open(t)
	proxy := faultyNetwork(t)
	a := b.open(t, func(cfg *impls.Config) { cfg.Dial = (&faultnet.Dialer{Proxy: proxy.Addr()}).Dial })

	rise := b.sitOn(t, key) // so that the acquire waits in the server
	got := make(chan error)
	at := recipetest.NewAttempt()
	go func() {
		_, err := a.Acquire(t.Context(), key, at)
		got <- err
	}()
	await(t, "the acquire waits in the server", func() bool {
		return b.running(t, "UPDATE lockbench_lease%"+at.String()+"%") > 0
	})
	if err := proxy.Apply("reset", faultnet.Rule{Reset: true}); err != nil {
		t.Fatal(err)
	}
	recipetest.WantOutcome(t, "acquire cut off", <-got, impls.ErrUnknown)

	cleaned := make(chan error)
	go func() { cleaned <- recipetest.CleanUp(t, a, key, at) }()
	await(t, "the clean-up has killed the abandoned statement and waits for the row itself", func() bool {
		return b.running(t, "UPDATE lockbench_lease%SET owner = ''%"+at.String()+"%") > 0
	})
	rise()
	recipetest.WantOutcome(t, "clean up", <-cleaned, impls.ErrLost)
	release(t, hold(t, other, key), nil)
}

// TestRowLocked: a row that another transaction sits on is neither busy nor in
// doubt: a try had no effect, and an acquire asks again.
func TestRowLocked(t *testing.T) {
	b := newBench(t, "mysql/lease-row", 10*time.Second)
	b.cfg.Timeout = 2500 * time.Millisecond // rows are waited for by whole seconds: for one
	key := b.key(t)
	trying, waiting := b.open(t), b.open(t)
	rise := b.sitOn(t, key)
	got := acquire(t.Context(), waiting, key)
	_, err := trying.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try", err, impls.ErrFailed)
	rise()
	g := <-got
	recipetest.WantOutcome(t, "acquire", g.err, nil)
	release(t, g.hold, nil)
}

// sitOn locks the row of key in another transaction, until rise is
// called or the test ends.
func (b bench) sitOn(t *testing.T, key string) (rise func()) {
	t.Helper()
	tx, err := b.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "SELECT * FROM lockbench_lease WHERE name = ? FOR UPDATE", key); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLeaseOver: a lease that is over can be neither extended nor released,
// though no client has taken the row yet.
func TestLeaseOver(t *testing.T) {
	b := newBench(t, "mysql/lease-row", time.Millisecond)
	key := b.key(t)
	a := b.open(t)
	for doing, call := range map[string]func(impls.Hold) error{
		"extend":   func(h impls.Hold) error { return h.Extend(t.Context()) },
		"release":  func(h impls.Hold) error { return h.Release(t.Context()) },
		"clean up": func(h impls.Hold) error { return a.Cleanup(t.Context(), key, h.Attempt()) },
	} {
		h := hold(t, a, key)
		await(t, "the lease is over", func() bool {
			return b.count(t, "SELECT COUNT(*) FROM lockbench_lease WHERE name = ? AND expires < UTC_TIMESTAMP(6)", key) == 1
		})
		recipetest.WantOutcome(t, doing, call(h), impls.ErrLost)
		if n := b.count(t, "SELECT COUNT(*) FROM lockbench_lease WHERE name = ? AND expires >= UTC_TIMESTAMP(6)", key); n != 0 {
			t.Errorf("%s revived the lease", doing)
		}
		release(t, h, impls.ErrLost)
	}
}
