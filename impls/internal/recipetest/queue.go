package recipetest

import (
	"context"
	"errors"
	"testing"

	"github.com/lockbench/lockbench/impls"
)

// Queue is a recipe with a queue of waiters, as its own tests see it.
type Queue struct {
	Open func(*testing.T) impls.Client
	// Await returns when n attempts are in the queue of key, the holder included.
	Await func(t *testing.T, key string, n int)
}

// Gap checks that a waiter does not become the first when the one before it leaves.
func (q Queue) Gap(t *testing.T, key string) {
	first, second, third := q.Open(t), q.Open(t), q.Open(t)
	h, err := first.Acquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "acquire", err, nil)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	leaving := NewAttempt()
	go func() {
		_, err := second.Acquire(ctx, key, leaving)
		left <- err
	}()
	q.Await(t, key, 2)
	released := make(chan struct{})
	got := make(chan error, 1)
	go func() {
		next, err := third.Acquire(t.Context(), key, NewAttempt())
		select {
		case <-released:
		default:
			err = errors.Join(err, errors.New("granted before the holder released"))
		}
		if err == nil {
			err = next.Release(t.Context())
		}
		got <- err
	}()
	q.Await(t, key, 3)
	leave()
	WantOutcome(t, "the waiter that left, owing a clean-up", <-left, impls.ErrUnknown)
	WantOutcome(t, "its clean-up", second.Cleanup(t.Context(), key, leaving), nil)
	close(released)
	WantOutcome(t, "release", h.Release(t.Context()), nil)
	WantOutcome(t, "the third's acquire and release", <-got, nil)
}

// LostPlace checks that a waiter whose place in the queue is gone does not take its
// predecessor's departure for a grant. remove removes the place.
func (q Queue) LostPlace(t *testing.T, key string, remove func(waiter impls.Client, a impls.Attempt)) {
	holder, waiter := q.Open(t), q.Open(t)
	h, err := holder.Acquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "acquire", err, nil)
	got := make(chan error, 1)
	gone := NewAttempt()
	go func() {
		_, err := waiter.Acquire(t.Context(), key, gone)
		got <- err
	}()
	q.Await(t, key, 2)
	remove(waiter, gone)
	WantOutcome(t, "release", h.Release(t.Context()), nil)
	if err := <-got; err == nil {
		t.Error("granted without a place in the queue")
	}
}
