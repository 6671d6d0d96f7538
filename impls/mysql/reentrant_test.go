package mysql_test

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// depth checks how often a client holds key by its own count.
func depth(t *testing.T, c impls.Client, key string, want int) {
	t.Helper()
	r, ok := c.(impls.Reentrant)
	if !ok {
		t.Fatalf("%T is not re-entrant", c)
	}
	if got := r.Depth(key); got != want {
		t.Errorf("depth %d, want %d", got, want)
	}
}

// TestInnerReleaseFreesOuterHold: with the owner's name alone.
func TestInnerReleaseFreesOuterHold(t *testing.T) {
	b := newBench(t, "mysql/insert-reentrant", time.Second)
	key := b.key(t)
	a, c, d := b.open(t), b.open(t), b.open(t)
	outer := hold(t, a, key)
	busy(t, c, key)
	inner := hold(t, a, key)
	depth(t, a, key, 2)
	release(t, inner, nil)
	depth(t, a, key, 1)
	intruder := hold(t, c, key) // while the outer hold goes on
	release(t, outer, nil)      // and frees the intruder's lock
	depth(t, a, key, 0)
	last := hold(t, d, key)
	release(t, intruder, nil)
	release(t, last, impls.ErrLost)

	// Inner attempts wrote nothing: there is nothing to clean up, and cleaning
	// up harms no other client.
	outer, inner = hold(t, a, key), hold(t, a, key)
	recipetest.WantOutcome(t, "clean up the inner attempt", a.Cleanup(t.Context(), key, inner.Attempt()), impls.ErrLost)
	busy(t, c, key)
	recipetest.WantOutcome(t, "clean up the outer attempt", a.Cleanup(t.Context(), key, outer.Attempt()), nil)
	release(t, hold(t, c, key), nil)
}

// TestLookLost: the look whose the row is changes nothing, so that a lost
// answer leaves no doubt.
func TestLookLost(t *testing.T) {
	b := newBench(t, "mysql/insert-reentrant", time.Second)
	key := b.key(t)
	var net replies
	a, c := b.open(t), b.open(t, func(cfg *impls.Config) { cfg.Dial = net.dial })
	h := hold(t, a, key)
	net.arm("SELECT COUNT(id)")
	at := recipetest.NewAttempt()
	_, err := c.TryAcquire(t.Context(), key, at)
	recipetest.WantOutcome(t, "try", err, impls.ErrFailed)
	recipetest.WantOutcome(t, "clean up", c.Cleanup(t.Context(), key, at), impls.ErrLost)
	busy(t, c, key)
	release(t, h, nil)
}

// TestCount: with a counter the lock is free when all have released.
func TestCount(t *testing.T) {
	b := newBench(t, "mysql/insert-reentrant-count", time.Second)
	const stored = "SELECT COALESCE(SUM(locked), -1) FROM lockbench_insert_reentrant_count WHERE order_id = ?"

	t.Run("any order", func(t *testing.T) {
		key := b.key(t)
		a, c := b.open(t), b.open(t)
		outer, inner := hold(t, a, key), hold(t, a, key)
		for i, h := range []impls.Hold{outer, inner} {
			busy(t, c, key)
			if n := b.count(t, stored, key); n != 2-i {
				t.Errorf("the row counts %d, want %d", n, 2-i)
			}
			depth(t, a, key, 2-i)
			release(t, h, nil)
			release(t, h, impls.ErrLost)
		}
		release(t, hold(t, c, key), nil)
	})

	// Whatever answer is lost, the clean-up or the repeated release leaves the
	// count as the client's own.
	for _, lost := range []struct {
		text     string
		entering bool
	}{{"locked + 1", true}, {"locked - 1", false}, {"locked = 0", false}} {
		t.Run("lost answer to "+lost.text, func(t *testing.T) {
			key := b.key(t)
			var net replies
			a, c := b.open(t, func(cfg *impls.Config) { cfg.Dial = net.dial }), b.open(t)
			outer := hold(t, a, key)
			if lost.entering {
				net.arm(lost.text)
				at := recipetest.NewAttempt()
				_, err := a.TryAcquire(t.Context(), key, at)
				recipetest.WantOutcome(t, "enter again", err, impls.ErrUnknown)
				recipetest.WantOutcome(t, "clean up", recipetest.CleanUp(t, a, key, at), nil)
				recipetest.WantOutcome(t, "clean up again", a.Cleanup(t.Context(), key, at), impls.ErrLost)
			} else {
				inner := hold(t, a, key)
				net.arm(lost.text)
				release(t, inner, impls.ErrUnknown)
				release(t, inner, impls.ErrLost) // it was carried out the first time
			}
			depth(t, a, key, 1)
			if n := b.count(t, stored, key); n != 1 {
				t.Errorf("the row counts %d, want 1", n)
			}
			busy(t, c, key)
			net.arm(lost.text)
			if lost.entering {
				release(t, outer, nil)
			} else {
				release(t, outer, impls.ErrUnknown)
				if err := outer.Release(t.Context()); !impls.Definite(err) {
					t.Errorf("release again: %v", err)
				}
			}
			release(t, hold(t, c, key), nil)
		})
	}

	t.Run("death within the last release", func(t *testing.T) {
		key := b.key(t)
		gate := recipetest.NewGate()
		a, c := b.open(t, func(cfg *impls.Config) { cfg.Steps = gate }), b.open(t)
		h := hold(t, a, key)
		open := gate.Shut("delete")
		released := make(chan error)
		go func() { released <- h.Release(t.Context()) }()
		gate.Await(t, "delete", 1)
		if n := b.count(t, stored, key); n != 0 {
			t.Errorf("the row counts %d, want 0", n)
		}
		busy(t, c, key) // for ever, if the holder never comes back
		open()
		recipetest.WantOutcome(t, "release", <-released, nil)
		release(t, hold(t, c, key), nil)
	})

	// Only another program can take the row of a holder away.
	for _, step := range []impls.Step{"select", "count-up"} {
		t.Run("the row goes before "+string(step), func(t *testing.T) {
			key := b.key(t)
			gate := recipetest.NewGate()
			a, c := b.open(t, func(cfg *impls.Config) { cfg.Steps = gate }), b.open(t)
			outer := hold(t, a, key)
			open := gate.Shut(step)
			got := acquire(t.Context(), a, key)
			gate.Await(t, step, 1)
			if _, err := b.db.ExecContext(t.Context(), "DELETE FROM lockbench_insert_reentrant_count WHERE order_id = ?", key); err != nil {
				t.Fatal(err)
			}
			other := hold(t, c, key)
			open()
			gate.Await(t, impls.StepWaiting, 1) // refused, it asks again
			release(t, other, nil)
			g := <-got
			recipetest.WantOutcome(t, "acquire", g.err, nil)
			release(t, g.hold, nil)
			release(t, outer, impls.ErrLost)
		})
	}
}
