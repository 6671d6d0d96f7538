package zookeeper

import (
	"errors"
	"testing"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

func openLibrary(t *testing.T, addresses []string) (*libraryClient, *recipetest.Gate) {
	gate := recipetest.NewGate()
	return openAs(t, clientLock{}, addresses, gate).(*libraryClient), gate
}

// node is the path of an attempt's node, "" if there is none.
func node(t *testing.T, c *libraryClient, key string, a impls.Attempt) string {
	t.Helper()
	path, err := c.find(t.Context(), parent(kindLibrary, key), a)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// forgottenNode: an error after the creation leaves the node, which holds up the
// others until it is cleaned up.
func forgottenNode(t *testing.T, addresses []string) {
	const key = "forgotten"
	a, _ := openLibrary(t, addresses)
	b, gate := openLibrary(t, addresses)
	stray := parent(kindLibrary, key) + "/stray"
	if _, err := a.create(t.Context(), stray, 0); err != nil {
		t.Fatal(err)
	}
	gone := recipetest.NewAttempt()
	_, err := a.Acquire(t.Context(), key, gone)
	recipetest.WantOutcome(t, "acquire beside a node of another name", err, impls.ErrUnknown)
	deleteNodes(t, b.client, stray)
	got := acquiring(t, gate, b.Acquire, key, recipetest.NewAttempt())
	waiting(t, "the client after the node that was left", got)
	if node(t, b, key, gone) == "" {
		t.Fatal("nothing was left behind")
	}
	recipetest.WantOutcome(t, "clean up", a.Cleanup(t.Context(), key, gone), nil)
	recipetest.WantOutcome(t, "clean up again", a.Cleanup(t.Context(), key, gone), impls.ErrLost)
	release(t, granted(t, <-got))
}

// holdsWithoutNode: a waiter whose node is gone takes the departure of the one
// before for a grant, while another holds; zookeeper/sequence does not.
func holdsWithoutNode(t *testing.T, addresses []string) {
	const key = "without"
	holder, _ := openLibrary(t, addresses)
	waiter, wait := openLibrary(t, addresses)
	third, gate := openLibrary(t, addresses)
	h := acquire(t, holder, key)
	loser := recipetest.NewAttempt()
	first := acquiring(t, wait, waiter.Acquire, key, loser)
	second := acquiring(t, gate, third.Acquire, key, recipetest.NewAttempt())
	deleteNodes(t, holder.client, node(t, holder, key, loser))
	release(t, h)
	without, with := granted(t, <-first), granted(t, <-second)
	for _, h := range []impls.Hold{without, with} {
		select {
		case <-h.Lost():
			t.Error("a session was lost: this shows nothing")
		default:
		}
	}
	recipetest.WantOutcome(t, "release without a node", without.Release(t.Context()), impls.ErrLost)
	release(t, with)
}

// goesOn: an acquire that its caller gave up keeps its place, and takes the lock
// when it is its turn, until it is cleaned up.
func goesOn(t *testing.T, addresses []string) {
	const key = "goes on"
	holder, _ := openLibrary(t, addresses)
	waiter, wait := openLibrary(t, addresses)
	third, gate := openLibrary(t, addresses)
	h := acquire(t, holder, key)
	gone := abandoned(t, wait, waiter, key, 1)
	lock := waiter.claims[gone]
	next := acquiring(t, gate, third.Acquire, key, recipetest.NewAttempt())
	release(t, h)
	<-lock.done
	if lock.err != nil || node(t, holder, key, gone) == "" {
		t.Fatalf("the library has not gone on: %v", lock.err)
	}
	waiting(t, "the client after it", next)
	recipetest.WantOutcome(t, "clean up", waiter.Cleanup(t.Context(), key, gone), nil)
	h = granted(t, <-next)

	// The same again, cleaned up while the library still waits for another.
	gone = abandoned(t, wait, waiter, key, 2)
	lock = waiter.claims[gone]
	recipetest.WantOutcome(t, "clean up", waiter.Cleanup(t.Context(), key, gone), nil)
	recipetest.WantOutcome(t, "clean up again", waiter.Cleanup(t.Context(), key, gone), impls.ErrLost)
	release(t, h)
	<-lock.done // it takes this for a grant, which no caller receives
	if left := node(t, holder, key, gone); left != "" {
		t.Errorf("left behind: %s", left)
	}
	release(t, acquire(t, third, key))
}

// holderWaits: what the holder of a lock gives up waiting for is another attempt
// than the one that holds.
func holderWaits(t *testing.T, addresses []string) {
	const key = "holder waits"
	c, gate := openLibrary(t, addresses)
	h := acquire(t, c, key)
	gone := abandoned(t, gate, c, key, 1)
	recipetest.WantOutcome(t, "clean up", c.Cleanup(t.Context(), key, gone), nil)
	if node(t, c, key, h.Attempt()) == "" {
		t.Error("the clean-up has freed the lock")
	}
	release(t, h)
}

func noTry(t *testing.T, addresses []string) {
	c, _ := openLibrary(t, addresses)
	if _, err := c.TryAcquire(t.Context(), "served", recipetest.NewAttempt()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("try: %v, want %v", err, errors.ErrUnsupported)
	}
}
