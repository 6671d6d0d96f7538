package mysql_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// TestInsert: what the documents' simplest lock does, and how it fails.
func TestInsert(t *testing.T) {
	b := newBench(t, "mysql/insert", time.Second)

	t.Run("one of many inserts wins", func(t *testing.T) {
		key := b.key(t)
		var won, lost atomic.Int32
		done := make(chan error)
		const clients = 8
		for range clients {
			c := b.open(t)
			go func() {
				_, err := c.TryAcquire(t.Context(), key, recipetest.NewAttempt())
				if err == nil {
					won.Add(1)
				} else {
					lost.Add(1)
				}
				done <- err
			}()
		}
		for range clients {
			if err := <-done; err != nil {
				recipetest.WantOutcome(t, "try", err, impls.ErrBusy)
			}
		}
		if won.Load() != 1 || lost.Load() != clients-1 {
			t.Errorf("%d inserts won, %d lost", won.Load(), lost.Load())
		}
	})

	t.Run("the row of a holder that died stays", func(t *testing.T) {
		key := b.key(t)
		other := b.open(t)
		before := b.connections(t)
		dying := b.mortal(t)
		hold(t, dying, key)
		if err := dying.Close(); err != nil {
			t.Fatal(err)
		}
		await(t, "the server has buried the holder", func() bool { return b.connections(t) == before })
		busy(t, other, key)
		if i := b.recipe.Info(); i.Bound != impls.BoundNone || i.Takeover != nil || i.Promises(impls.DeadlockFree) {
			t.Errorf("it promises an end: %+v", i)
		}
	})

	t.Run("a clean-up that was refused unseen frees another's lock", func(t *testing.T) {
		key := b.key(t)
		var net replies
		a, c := b.open(t), b.open(t)
		doubter := b.open(t, func(cfg *impls.Config) { cfg.Dial = net.dial })
		h := hold(t, a, key)
		net.arm("INSERT")
		at := recipetest.NewAttempt()
		_, err := doubter.TryAcquire(t.Context(), key, at)
		recipetest.WantOutcome(t, "try whose refusal was lost", err, impls.ErrUnknown)
		recipetest.WantOutcome(t, "clean up", recipetest.CleanUp(t, doubter, key, at), nil)
		other := hold(t, c, key)
		release(t, h, nil) // the delete does not ask either: it has freed c's
		release(t, other, impls.ErrLost)
	})
}

// TestInsertRowLocked: what the server refuses for a moment is not granted, and
// a release that it refuses is asked for again.
func TestInsertRowLocked(t *testing.T) {
	b := newBench(t, "mysql/insert", time.Second)
	b.cfg.Timeout = 2500 * time.Millisecond // rows are waited for by whole seconds: for one
	key := b.key(t)
	a, c := b.open(t), b.open(t)
	tx, err := b.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(t.Context(), "INSERT INTO lockbench_insert (order_id) VALUES (?)", key); err != nil {
		t.Fatal(err)
	}
	got := acquire(t.Context(), c, key)
	busy(t, a, key)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	g := <-got
	recipetest.WantOutcome(t, "acquire", g.err, nil)

	tx, err = b.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	b.lockRow(t, tx, "SELECT id FROM lockbench_insert WHERE order_id = ? FOR UPDATE", key)
	before := b.status(t, "innodb_row_lock_waits")
	released := make(chan error)
	go func() { released <- g.hold.Release(t.Context()) }()
	await(t, "the release was refused, and waits again", func() bool { return b.status(t, "innodb_row_lock_waits") >= before+2 })
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	recipetest.WantOutcome(t, "release", <-released, nil)
}

// handClock is a clock whose sleeps the test ends, one by one.
type handClock struct {
	impls.Clock
	tick chan struct{}
}

func (c handClock) Sleep(ctx context.Context, _ time.Duration) error {
	select {
	case <-c.tick:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestReaperEvictsLiveHolder: the job deletes an old row whether its owner
// lives or not, and the late delete of that owner frees the lock of another.
func TestReaperEvictsLiveHolder(t *testing.T) {
	b := newBench(t, "mysql/insert-reaper", time.Second)
	key := b.key(t)
	job := handClock{impls.SystemClock(), make(chan struct{})}
	slow := b.open(t, func(cfg *impls.Config) { cfg.Clock = job })
	patient := func(cfg *impls.Config) { cfg.TTL = time.Hour } // its job deletes nothing here
	next, third := b.open(t, patient), b.open(t, patient)

	h := hold(t, slow, key)
	end := h.LeaseEnd()
	got := acquire(t.Context(), next, key)
	var g granted
	for evicted := false; !evicted; {
		select {
		case job.tick <- struct{}{}:
		case g = <-got:
			evicted = true
		}
	}
	recipetest.WantOutcome(t, "acquire while the slow holder lives", g.err, nil)
	if early := time.Until(end); early > 0 {
		t.Errorf("evicted %v before the lease's end", early)
	}
	release(t, h, nil) // it does not know that it was evicted
	other := hold(t, third, key)
	release(t, g.hold, nil)
	release(t, other, impls.ErrLost)
}

// TestReaperFreesTheDead: the job of any client that lives is enough.
func TestReaperFreesTheDead(t *testing.T) {
	b := newBench(t, "mysql/insert-reaper", time.Second)
	key := b.key(t)
	dying := b.mortal(t)
	hold(t, dying, key)
	if err := dying.Close(); err != nil {
		t.Fatal(err)
	}
	g := <-acquire(t.Context(), b.open(t), key)
	recipetest.WantOutcome(t, "acquire what the dead one held", g.err, nil)
}

func TestReaperTTL(t *testing.T) {
	r := recipe(t, "mysql/insert-reaper")
	for ttl, ok := range map[time.Duration]bool{
		0: false, -time.Second: false, time.Millisecond: false, 1500 * time.Millisecond: false, 839 * time.Hour: false,
		time.Second: true, 2 * time.Minute: true, 838 * time.Hour: true,
	} {
		if err := r.CheckTTL(ttl, impls.DefaultLimits()); (err == nil) != ok {
			t.Errorf("a TTL of %v: %v", ttl, err)
		}
	}
}
