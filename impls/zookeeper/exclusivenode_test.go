package zookeeper

import (
	"testing"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

func openExclusive(t *testing.T, addresses []string) *exclusiveClient {
	return openAs(t, exclusiveNode{}, addresses, nil).(*exclusiveClient)
}

// foreignRelease: a holder who comes back after its session expired frees its
// successor's lock, and a third is granted it as well.
func foreignRelease(t *testing.T, addresses []string) {
	const key = "foreign release"
	var p plug
	old := openPlugged(t, exclusiveNode{}, addresses, &p).(*exclusiveClient)
	next, third := openExclusive(t, addresses), openExclusive(t, addresses)
	late := acquire(t, old, key)
	cutUntilGone(t, &p, old.client, next.client, agreed(key))
	h := try(t, next, key, nil)
	if _, err := old.live(t.Context()); err != nil {
		t.Fatal(err)
	}
	recipetest.WantOutcome(t, "late release", late.Release(t.Context()), nil)
	double := try(t, third, key, nil)
	select {
	case <-h.Lost():
		t.Error("the successor's session is lost: this shows nothing")
	default:
	}
	release(t, double)
	recipetest.WantOutcome(t, "release of what is not there", h.Release(t.Context()), impls.ErrLost)
}

// cleanupByOwner: clean-up, unlike release, leaves a successor's node alone.
func cleanupByOwner(t *testing.T, addresses []string) {
	const key = "clean-up by owner"
	a, b := openExclusive(t, addresses), openExclusive(t, addresses)
	old := acquire(t, a, key)
	deleteNodes(t, b.client, agreed(key))
	h := try(t, b, key, nil)
	recipetest.WantOutcome(t, "clean up what is gone", a.Cleanup(t.Context(), key, old.Attempt()), impls.ErrLost)
	recipetest.WantOutcome(t, "release after the clean-up", old.Release(t.Context()), impls.ErrLost)
	try(t, a, key, impls.ErrBusy)
	recipetest.WantOutcome(t, "clean up one's own", b.Cleanup(t.Context(), key, h.Attempt()), nil)
	release(t, try(t, a, key, nil))

	// Two attempts of one client: the node does not show its attempt.
	h = try(t, a, key, nil)
	doubt := recipetest.NewAttempt()
	a.may[doubt] = mayHold{key: key}
	recipetest.WantOutcome(t, "clean up a doubt of the holder's", a.Cleanup(t.Context(), key, doubt), impls.ErrUnknown)
	release(t, h)
	recipetest.WantOutcome(t, "clean it up after the release", a.Cleanup(t.Context(), key, doubt), impls.ErrLost)
}

// freedBeforeWatch: a lock that is freed between the refusal and the watch wakes
// no waiter, and is found free nevertheless.
func freedBeforeWatch(t *testing.T, addresses []string) {
	const key = "freed before the watch"
	gate := recipetest.NewGate()
	open := gate.Shut(stepWatch)
	defer open()
	h := acquire(t, openExclusive(t, addresses), key)
	waiter := openAs(t, exclusiveNode{}, addresses, gate)
	got := recipetest.Begin(t, gate, stepWatch, 1, func() (impls.Hold, error) {
		return waiter.Acquire(t.Context(), key, recipetest.NewAttempt())
	})
	release(t, h)
	open()
	release(t, granted(t, <-got))
	if n := gate.Count(impls.StepWoken); n != 0 {
		t.Errorf("woken %d times by what happened before it watched", n)
	}
}

// waiterOutlivesItsSession: who waits has nothing on the servers, and goes on
// with a new session.
func waiterOutlivesItsSession(t *testing.T, addresses []string) {
	const key = "waiter's session"
	var p plug
	holder := openExclusive(t, addresses)
	waiter := openPlugged(t, exclusiveNode{}, addresses, &p).(*exclusiveClient)
	gate := recipetest.NewGate()
	waiter.driver.cfg.Steps = gate
	h := acquire(t, holder, key)
	mark := acquire(t, waiter, "waiter's mark") // hangs on the same session
	got := acquiring(t, gate, waiter.Acquire, key, recipetest.NewAttempt())
	cutUntilGone(t, &p, waiter.client, holder.client, agreed("waiter's mark"))
	release(t, h)
	release(t, granted(t, <-got))
	recipetest.WantOutcome(t, "release of what hung on the old session", mark.Release(t.Context()), impls.ErrLost)
}

// lateReleaseRepeats: the first release after the session expired meets a closed
// connection; the next one, with a new session, frees the successor's lock.
func lateReleaseRepeats(t *testing.T, addresses []string) {
	const key = "late release"
	var p plug
	old := openPlugged(t, exclusiveNode{}, addresses, &p).(*exclusiveClient)
	next := openExclusive(t, addresses)
	late := acquire(t, old, key)
	cutUntilGone(t, &p, old.client, next.client, agreed(key))
	try(t, next, key, nil)
	recipetest.WantOutcome(t, "late release", late.Release(t.Context()), nil)
	release(t, try(t, next, key, nil))
}
