package mysql_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/internal/faultnet"
)

// waiters counts the transactions that wait for a row of the bench's table,
// from the processlist, which is never a copy of earlier times.
func (b bench) waiters(t *testing.T) int {
	t.Helper()
	return b.running(t, "SELECT id FROM lockbench_for_update% FOR UPDATE")
}

// TestForUpdateConnections: the row is bound to a connection, and to it alone.
func TestForUpdateConnections(t *testing.T) {
	b := newBench(t, "mysql/for-update", time.Millisecond) // no lease is so short

	t.Run("a waiter is granted the row of a holder that died", func(t *testing.T) {
		key := b.key(t)
		next := b.open(t)
		dying := b.mortal(t)
		h := hold(t, dying, key)
		if !h.LeaseEnd().IsZero() || !errors.Is(h.Extend(t.Context()), errors.ErrUnsupported) {
			t.Error("a lease where there is none")
		}
		got := acquire(t.Context(), next, key)
		await(t, "the waiter is on the server", func() bool { return b.waiters(t) == 1 })
		if err := dying.Close(); err != nil {
			t.Fatal(err)
		}
		g := <-got
		recipetest.WantOutcome(t, "acquire", g.err, nil)
		release(t, g.hold, nil)
	})

	t.Run("connection killed under a hold", func(t *testing.T) {
		key := b.key(t)
		a, c := b.open(t), b.open(t)
		h := hold(t, a, key)
		b.killTransactions(t)
		next := <-acquire(t.Context(), c, key)
		recipetest.WantOutcome(t, "acquire after the kill", next.err, nil)
		release(t, h, impls.ErrUnknown) // at first
		select {
		case <-h.Lost():
		default:
			t.Error("the hold did not signal that its connection is gone")
		}
		release(t, h, impls.ErrLost)
		recipetest.WantOutcome(t, "clean up", recipetest.CleanUp(t, a, key, h.Attempt()), impls.ErrLost)
		busy(t, a, key)
		release(t, next.hold, nil)
	})

	t.Run("cancelled waiter leaves the server", func(t *testing.T) {
		key := b.key(t)
		a, c := b.open(t), b.open(t)
		h := hold(t, a, key)
		ctx, cancel := context.WithCancel(t.Context())
		got := acquire(ctx, c, key)
		await(t, "the waiter is on the server", func() bool { return b.waiters(t) == 1 })
		cancel()
		g := <-got
		recipetest.WantOutcome(t, "cancelled acquire", g.err, impls.ErrFailed)
		if n := b.waiters(t); n != 0 {
			t.Errorf("%d waiters are still on the server", n)
		}
		release(t, h, nil)
		release(t, hold(t, a, key), nil)
		release(t, hold(t, c, key), nil)
	})

	t.Run("a lost grant is cleaned up", func(t *testing.T) {
		key := b.key(t)
		var net replies
		a, c := b.open(t, func(cfg *impls.Config) { cfg.Dial = net.dial }), b.open(t)
		net.arm("FOR UPDATE")
		at := recipetest.NewAttempt()
		_, err := a.TryAcquire(t.Context(), key, at)
		recipetest.WantOutcome(t, "try", err, impls.ErrUnknown)
		_ = recipetest.CleanUp(t, a, key, at) // either is right: the server may have seen the end by itself
		recipetest.WantOutcome(t, "clean up again", a.Cleanup(t.Context(), key, at), impls.ErrLost)
		release(t, hold(t, c, key), nil)
	})

	t.Run("no row", func(t *testing.T) {
		b.key(t)
		c := b.open(t)
		_, err := c.TryAcquire(t.Context(), "never prepared", recipetest.NewAttempt())
		recipetest.WantOutcome(t, "try", err, impls.ErrFailed)
		if !strings.Contains(err.Error(), "prepare") {
			t.Errorf("%v does not say what to do", err)
		}
	})

	t.Run("prepare while a row is held", func(t *testing.T) {
		key := b.key(t)
		h := hold(t, b.open(t), key)
		// A holder has the gap before its row, too, so that the new key is one that
		// comes after it.
		recipetest.Prepare(t, b.recipe, b.cfg, key, key+"/more")
		if n := b.count(t, "SELECT COUNT(*) FROM lockbench_for_update WHERE method_name = ?", key); n != 1 {
			t.Errorf("%d rows of one key", n)
		}
		release(t, h, nil)
	})
}

// killTransactions kills the connections that have a transaction. The server
// returns them from a copy of the last 100 ms.
func (b bench) killTransactions(t *testing.T) {
	t.Helper()
	await(t, "a transaction is seen and killed", func() bool {
		var id int
		err := b.db.QueryRowContext(t.Context(), "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_rows_locked > 0").Scan(&id)
		if err != nil {
			return false
		}
		_, err = b.db.ExecContext(t.Context(), fmt.Sprintf("KILL %d", id))
		return err == nil
	})
}

// TestAbandonedRowLock: a statement that still waits in the server when its client has
// given its connection up must not be granted the row after the clean-up.
func TestAbandonedRowLock(t *testing.T) {
	b := newBench(t, "mysql/for-update", time.Second)
	b.cfg.Timeout = time.Second
	key := b.key(t)
	a := b.open(t)
	proxy := faultyNetwork(t)
	waiter := b.open(t, func(cfg *impls.Config) { cfg.Dial = (&faultnet.Dialer{Proxy: proxy.Addr()}).Dial })
	h := hold(t, a, key)
	ctx, cancel := context.WithCancel(t.Context())
	at := recipetest.NewAttempt()
	got := make(chan error)
	go func() {
		_, err := waiter.Acquire(ctx, key, at)
		got <- err
	}()
	await(t, "the waiter is on the server", func() bool { return b.waiters(t) == 1 })
	// The client cannot ask the server to end the wait.
	if err := proxy.Apply("cut", faultnet.Rule{CutIn: true, CutOut: true}); err != nil {
		t.Fatal(err)
	}
	cancel()
	recipetest.WantOutcome(t, "acquire", <-got, impls.ErrUnknown)
	if b.waiters(t) != 1 {
		t.Error("the statement ended by itself: this test shows nothing")
	}
	proxy.Lift("cut")
	recipetest.WantOutcome(t, "clean up", recipetest.CleanUp(t, waiter, key, at), nil)
	if n := b.waiters(t); n != 0 {
		t.Errorf("%d ghosts are left", n)
	}
	release(t, h, nil)
	release(t, hold(t, waiter, key), nil)
}

// TestUnrelatedRows: with an index on the keys a holder has its own, without
// one it has all.
func TestUnrelatedRows(t *testing.T) {
	b := newBench(t, "mysql/for-update", time.Second)
	keys := b.keys(t, 3)
	h := hold(t, b.open(t), keys[0])
	c := b.open(t)
	release(t, hold(t, c, keys[1]), nil)
	release(t, hold(t, c, keys[2]), nil)
	release(t, h, nil)

	b.recipe = recipe(t, "mysql/for-update-no-index")
	keys = b.keys(t, 3)
	a, c := b.open(t), b.open(t)
	for _, held := range keys {
		h := hold(t, a, held)
		for _, key := range keys {
			busy(t, c, key)
		}
		got := acquire(t.Context(), c, keys[1])
		await(t, "the waiter is on the server", func() bool { return b.waiters(t) == 1 })
		release(t, h, nil)
		g := <-got
		recipetest.WantOutcome(t, "acquire of an unrelated key", g.err, nil)
		release(t, g.hold, nil)
	}

	t.Run("a refused scan lets go of the rows before", func(t *testing.T) {
		gate := recipetest.NewGate()
		d := b.open(t, func(cfg *impls.Config) { cfg.Steps = gate })
		tx, err := b.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		const byID = "SELECT id FROM lockbench_for_update_no_index WHERE id = ? FOR UPDATE"
		b.lockRow(t, tx, byID, 3)
		open := gate.Shut("rollback")
		tried := make(chan error)
		go func() {
			_, err := d.TryAcquire(t.Context(), keys[0], recipetest.NewAttempt())
			tried <- err
		}()
		gate.Await(t, "rollback", 1)
		other, err := b.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Rollback()
		var id int
		if err := other.QueryRowContext(t.Context(), byID+" NOWAIT", 1).Scan(&id); err == nil {
			t.Error("the first row is free within a refused scan: this test shows nothing")
		}
		open()
		recipetest.WantOutcome(t, "try", <-tried, impls.ErrBusy)
		b.lockRow(t, other, byID+" NOWAIT", 1)
	})
}

// TestPlans: how the server finds a row. The document warns that it may read
// all of a small table although there is an index. For one row of a unique
// index it does not, however small the table: that is refuted here for the
// server under test. What does make it read all rows is a missing index, or a
// comparison that no index serves, such as a text's with a number.
func TestPlans(t *testing.T) {
	b := newBench(t, "mysql/for-update", time.Second)
	plan := func(table, key string) (access string) {
		t.Helper()
		rows, err := b.db.QueryContext(t.Context(), "EXPLAIN SELECT id FROM "+table+" WHERE method_name = "+key+" FOR UPDATE")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil || !rows.Next() {
			t.Fatal(err, rows.Err())
		}
		values := make([]any, len(columns))
		for i, name := range columns {
			values[i] = new(any)
			if name == "type" {
				values[i] = &access
			}
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		return access
	}
	bare := b
	bare.recipe = recipe(t, "mysql/for-update-no-index")
	for _, more := range []int{1, 1, 8, 90} {
		key := "'" + b.keys(t, more)[0] + "'"
		if got := plan("lockbench_for_update", key); got != "const" {
			t.Errorf("with an index and %d rows more the row is found by %q, want const", more, got)
		}
		key = "'" + bare.keys(t, more)[0] + "'"
		if got := plan("lockbench_for_update_no_index", key); got != "ALL" {
			t.Errorf("without an index and %d rows more the row is found by %q, want ALL", more, got)
		}
	}
	if got := plan("lockbench_for_update", "7"); got == "const" {
		t.Errorf("a number is found by %q", got)
	}
}

// TestPoolExhausted: holders and waiters of one key use up a pool, and a free
// key cannot be locked.
func TestPoolExhausted(t *testing.T) {
	b := newBench(t, "mysql/for-update", time.Second)
	keys := b.keys(t, 2)
	shared := &impls.Shared{Connections: 4}
	pooled := func(cfg *impls.Config) { cfg.Shared = shared }
	t.Cleanup(func() {
		if err := shared.Close(); err != nil {
			t.Errorf("close the pool: %v", err)
		}
	})
	holder := hold(t, b.open(t, pooled), keys[0])
	var waiting []<-chan granted
	for range 3 {
		waiting = append(waiting, acquire(t.Context(), b.open(t, pooled), keys[0]))
	}
	await(t, "all waiters are on the server", func() bool { return b.waiters(t) == 3 })

	gate := recipetest.NewGate()
	last := b.open(t, pooled, func(cfg *impls.Config) { cfg.Steps = gate })
	release(t, hold(t, b.open(t), keys[1]), nil) // it is free, for those with a connection
	ctx, cancel := context.WithCancel(t.Context())
	tried := make(chan error)
	go func() {
		_, err := last.TryAcquire(ctx, keys[1], recipetest.NewAttempt())
		tried <- err
	}()
	gate.Await(t, "draw", 1)
	// Whether it waits already or begins to: its end comes first.
	cancel()
	err := <-tried
	recipetest.WantOutcome(t, "try of a free key", err, impls.ErrFailed)

	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = last.Acquire(ctx, keys[1], recipetest.NewAttempt())
	recipetest.WantOutcome(t, "acquire of a free key", err, impls.ErrFailed)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "all 4 connections") {
		t.Errorf("%v does not say why", err)
	}

	// One that goes on waiting is served when the holder has left.
	got := acquire(t.Context(), last, keys[1])
	release(t, holder, nil)
	for left := len(waiting); left > 0; left-- {
		var g granted
		select {
		case g = <-waiting[0]:
		case g = <-waiting[1]:
		case g = <-waiting[2]:
		}
		recipetest.WantOutcome(t, "a waiter's acquire", g.err, nil)
		release(t, g.hold, nil)
	}
	g := <-got
	recipetest.WantOutcome(t, "acquire when there is a connection", g.err, nil)
	release(t, g.hold, nil)
}

// TestOrder: waiters are served in the order in which they came to the server,
// on the server under test. MySQL documents this for transactions of equal
// weight only.
func TestOrder(t *testing.T) {
	// How many stand in a queue of the server: who is only on the way into one
	// does not count.
	rows := func(t *testing.T, b bench) int { return b.status(t, "innodb_row_lock_current_waits") }
	names := func(t *testing.T, b bench) int {
		return b.count(t, "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'")
	}
	for id, queued := range map[string]func(*testing.T, bench) int{
		"mysql/get-lock": names, "mysql/for-update": rows, "mysql/for-update-no-index": rows,
	} {
		t.Run(id, func(t *testing.T) {
			b := newBench(t, id, time.Second)
			key := b.key(t)
			if !b.recipe.Info().Promises(impls.Ordered) {
				t.Error("it does not promise what this test shows")
			}
			clients := make([]impls.Client, 8)
			for i := range clients {
				clients[i] = b.open(t)
			}
			for range 20 {
				h := hold(t, clients[0], key)
				served := make(chan int, len(clients))
				var group sync.WaitGroup
				for i, c := range clients[1:] {
					group.Go(func() {
						h, err := c.Acquire(t.Context(), key, recipetest.NewAttempt())
						served <- i
						if err != nil || h.Release(t.Context()) != nil {
							t.Errorf("waiter %d: %v", i, err)
						}
					})
					await(t, "the waiter is in the queue", func() bool { return queued(t, b) == i+1 })
				}
				release(t, h, nil)
				for want := range clients[1:] {
					if i := <-served; i != want {
						t.Errorf("waiter %d was served as number %d", i, want)
					}
				}
				group.Wait()
			}
		})
	}
}

// faultyNetwork is a proxy for one client's dialer.
func faultyNetwork(t *testing.T) *faultnet.Proxy {
	t.Helper()
	p, err := faultnet.ListenDialer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}
