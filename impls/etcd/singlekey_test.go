package etcd

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

func openSingle(t *testing.T, addresses []string) *singleClient {
	return openAs(t, singleKey{}, addresses, nil).(*singleClient)
}

// foreignRelease: a holder who comes back after its lease ended frees its
// successor's lock, and a third is granted it as well.
func foreignRelease(t *testing.T, addresses []string) {
	const key = "foreign release"
	old, next, third := openSingle(t, addresses), openSingle(t, addresses), openSingle(t, addresses)
	late, err := old.Acquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "acquire", err, nil)
	if _, err := old.api.Revoke(t.Context(), old.session.lease); err != nil {
		t.Fatal(err)
	}
	<-late.Lost() // at the next renewal
	h, err := next.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try by the successor", err, nil)
	recipetest.WantOutcome(t, "late release", late.Release(t.Context()), nil)
	double, err := third.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try by a third while the successor holds", err, nil)
	select {
	case <-h.Lost():
		t.Error("the successor's session is lost: this shows nothing")
	default:
	}
	recipetest.WantOutcome(t, "release by the third", double.Release(t.Context()), nil)
	recipetest.WantOutcome(t, "release by the successor, of what is not there", h.Release(t.Context()), impls.ErrLost)
}

// cleanupByLease: clean-up, unlike release, leaves a successor's key alone.
func cleanupByLease(t *testing.T, addresses []string) {
	const key = "clean-up by lease"
	a, b := openSingle(t, addresses), openSingle(t, addresses)
	gone := recipetest.NewAttempt()
	old, err := a.Acquire(t.Context(), key, gone)
	recipetest.WantOutcome(t, "acquire", err, nil)
	if _, err := b.api.Delete(t.Context(), single(key)); err != nil {
		t.Fatal(err)
	}
	h, err := b.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try by the successor", err, nil)
	recipetest.WantOutcome(t, "clean up what is gone", a.Cleanup(t.Context(), key, gone), impls.ErrLost)
	recipetest.WantOutcome(t, "release after the clean-up", old.Release(t.Context()), impls.ErrLost)
	_, err = a.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try while the successor holds", err, impls.ErrBusy)
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)

	// Nor does the clean-up of a doubt free what the same client holds.
	h, err = a.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try", err, nil)
	doubt := recipetest.NewAttempt()
	a.may[doubt] = mayHold{key: key, session: a.session}
	recipetest.WantOutcome(t, "clean up a doubt of the holder's", a.Cleanup(t.Context(), key, doubt), impls.ErrLost)
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
}

// lateSingle: once the clean-up was answered, a transaction of the attempt that
// was held up on its way has no effect any more.
func lateSingle(t *testing.T, addresses []string) {
	const key = "late single"
	c := openSingle(t, addresses)
	a := recipetest.NewAttempt()
	c.may[a] = mayHold{key: key, session: c.session}
	recipetest.WantOutcome(t, "clean up of what has not arrived", c.Cleanup(t.Context(), key, a), impls.ErrLost)
	_, err := c.TryAcquire(t.Context(), key, a)
	recipetest.WantOutcome(t, "the late try", err, impls.ErrFailed)
	h, err := c.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try", err, nil)
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
}

// freedBeforeWatch: a lock that is freed between the refusal and the watch wakes
// no waiter, and is found free nevertheless.
func freedBeforeWatch(t *testing.T, addresses []string) {
	const key = "freed before the watch"
	gate := recipetest.NewGate()
	open := gate.Shut(stepWatch)
	defer open()
	holder, waiter := openSingle(t, addresses), openAs(t, singleKey{}, addresses, gate)
	h, err := holder.Acquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "acquire", err, nil)
	got := acquiring(t, gate, stepWatch, 1, waiter, key)
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
	open()
	r := <-got
	recipetest.WantOutcome(t, "the waiter's acquire", r.Err, nil)
	recipetest.WantOutcome(t, "its release", r.Hold.Release(t.Context()), nil)
	if n := gate.Count(impls.StepWoken); n != 0 {
		t.Errorf("woken %d times by what happened before it watched", n)
	}
}

// waiterOutlivesItsSession: who waits has nothing on the server, and goes on
// with a new lease.
func waiterOutlivesItsSession(t *testing.T, addresses []string) {
	const key = "waiter's session"
	gate := recipetest.NewGate()
	holder, waiter := openSingle(t, addresses), openAs(t, singleKey{}, addresses, gate).(*singleClient)
	h, err := holder.Acquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "acquire", err, nil)
	first := waiter.session
	got := acquiring(t, gate, impls.StepWaiting, 1, waiter, key)
	if _, err := holder.api.Revoke(t.Context(), first.lease); err != nil {
		t.Fatal(err)
	}
	<-first.alive.Done()
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
	r := <-got
	recipetest.WantOutcome(t, "the waiter's acquire", r.Err, nil)
	recipetest.WantOutcome(t, "its release", r.Hold.Release(t.Context()), nil)
	resp, err := holder.api.Get(t.Context(), single(key), clientv3.WithCountOnly())
	if err != nil || resp.Count != 0 {
		t.Errorf("%d keys are left: %v", resp.Count, err)
	}
}
