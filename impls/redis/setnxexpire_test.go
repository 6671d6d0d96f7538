package redis_test

import (
	"context"
	"errors"
	"testing"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

const setnxExpire = "redis/setnx-expire"

// TestSetnxExpires: what goes well ends by itself, after the TTL.
func TestSetnxExpires(t *testing.T) {
	s := serve(t)
	a, key := s.open(t, setnxExpire), recipetest.NewKey()
	h := recipetest.Try(t, a, key)
	s.renewed(t, key)
	value, err := s.admin.Get(t.Context(), key).Result()
	if err != nil || value != key {
		t.Errorf("the value is %q (%v), want the key", value, err)
	}
	release(t, h)
	s.there(t, 0, key)
}

// TestSetnxDiesBeforeExpire: a client that dies between the two steps leaves a
// key that never expires.
func TestSetnxDiesBeforeExpire(t *testing.T) {
	s := serve(t)
	a, b, key := s.open(t, setnxExpire, stepping(recipetest.Dies("expire"))), s.open(t, setnxExpire), recipetest.NewKey()
	recipetest.RunUntilDeath(func() {
		_, err := a.TryAcquire(t.Context(), key, recipetest.NewAttempt())
		t.Errorf("it went on to %v", err)
	})
	// -1 is the server's word for a key without an end.
	if left, err := s.admin.PTTL(t.Context(), key).Result(); err != nil || left != -1 {
		t.Fatalf("the key has %v to live (%v), want no end", left, err)
	}
	busy(t, b, key)
	// One that dies a step later is outlived.
	key = recipetest.NewKey()
	a = s.open(t, setnxExpire, stepping(recipetest.Dies("delete")))
	recipetest.RunUntilDeath(func() { _ = recipetest.Try(t, a, key).Release(t.Context()) })
	s.lapse(t, key)
	acquire(t, b, key)
}

// TestSetnxExpireIsNotSent: an EXPIRE that came to nothing leaves the key too,
// and the caller owes a clean-up.
func TestSetnxExpireIsNotSent(t *testing.T) {
	s := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	a, b, key := s.open(t, setnxExpire, stepping(at{"expire", cancel})), s.open(t, setnxExpire), recipetest.NewKey()
	mine := recipetest.NewAttempt()
	_, err := a.Acquire(ctx, key, mine)
	recipetest.WantOutcome(t, "acquire", err, impls.ErrUnknown)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not say why", err)
	}
	busy(t, b, key)
	recipetest.WantOutcome(t, "clean-up", a.Cleanup(t.Context(), key, mine), nil)
	release(t, recipetest.Try(t, b, key))
}

// TestSetnxLateDelete: a holder that is late to release deletes its successor's
// key, and a third takes it.
func TestSetnxLateDelete(t *testing.T) {
	s := serve(t)
	gate := recipetest.NewGate()
	a, b, c := s.open(t, setnxExpire, stepping(gate)), s.open(t, setnxExpire), s.open(t, setnxExpire)
	for _, where := range []string{"before its release", "within its release"} {
		key := recipetest.NewKey()
		h := recipetest.Try(t, a, key)
		open, released := gate.Shut("delete"), make(chan error, 1)
		late := func() { released <- h.Release(t.Context()) }
		if where == "within its release" {
			go late()
			gate.Await(t, "delete", gate.Count("delete"))
		}
		s.lapse(t, key)
		successor := acquire(t, b, key)
		open()
		if where == "before its release" {
			late()
		}
		recipetest.WantOutcome(t, "the late release", <-released, nil)
		recipetest.Try(t, c, key)
		recipetest.Within(t, successor, impls.SystemClock())
	}
}

// TestSetnxLateExpire: EXPIRE does not check the owner of the key.
func TestSetnxLateExpire(t *testing.T) {
	s := serve(t)
	gate := recipetest.NewGate()
	a, b, key := s.open(t, setnxExpire, stepping(gate)), s.open(t, setnxExpire), recipetest.NewKey()
	open, got := gate.Shut("expire"), make(chan error, 1)
	go func() {
		_, err := a.TryAcquire(t.Context(), key, recipetest.NewAttempt())
		got <- err
	}()
	gate.Await(t, "expire", 1)
	s.remove(t, key) // as a late holder's DEL does
	recipetest.Try(t, b, key)
	open()
	recipetest.WantOutcome(t, "the first", <-got, nil) // both hold it
	s.renewed(t, key)
}
