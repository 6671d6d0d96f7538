package etcd

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

func openLibrary(t *testing.T, addresses []string) *libraryClient {
	return openAs(t, clientMutex{}, addresses, nil).(*libraryClient)
}

// sameSession: the library lets two locks of one session hold a key, and so
// this client does not ask it while it holds.
func sameSession(t *testing.T, addresses []string) {
	const key = "same session"
	c := openLibrary(t, addresses)
	first, second := concurrency.NewMutex(c.lib, libraryPrefix(key)), concurrency.NewMutex(c.lib, libraryPrefix(key))
	for i, m := range []*concurrency.Mutex{first, second} {
		if err := m.TryLock(t.Context()); err != nil {
			t.Fatalf("lock %d of one session: %v; does the library refuse it by now?", i, err)
		}
	}
	if err := second.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := openLibrary(t, addresses)
	h, err := other.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try after the second was released and the first was not", err, nil)
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)

	h, err = c.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try", err, nil)
	_, err = c.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try again by the holder", err, impls.ErrBusy)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Acquire(ctx, key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "acquire again by the holder", err, impls.ErrFailed)
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
	h, err = c.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try after the release", err, nil)
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
}

// sameSessionTokens: the key is new after every release, and with it the token
// greater, with and without a wait.
func sameSessionTokens(t *testing.T, addresses []string) {
	const key = "tokens"
	gate := recipetest.NewGate()
	c, waiter := openLibrary(t, addresses), openAs(t, clientMutex{}, addresses, gate)
	var last uint64
	grown := func(h impls.Hold) {
		t.Helper()
		if h.Fence() <= last {
			t.Errorf("token %d after %d", h.Fence(), last)
		}
		last = h.Fence()
	}
	for i := range 3 {
		h, err := c.Acquire(t.Context(), key, recipetest.NewAttempt())
		recipetest.WantOutcome(t, "acquire", err, nil)
		grown(h)
		got := acquiring(t, gate, impls.StepWaiting, i+1, waiter, key)
		recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
		r := <-got
		recipetest.WantOutcome(t, "the waiter's acquire", r.Err, nil)
		h = r.Hold
		grown(h)
		recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
	}
}

// silentRelease: Unlock does not report that the key was gone.
func silentRelease(t *testing.T, addresses []string) {
	c := openLibrary(t, addresses)
	h, err := c.Acquire(t.Context(), "silent", recipetest.NewAttempt())
	recipetest.WantOutcome(t, "acquire", err, nil)
	if _, err := c.api.Revoke(t.Context(), c.session.lease); err != nil {
		t.Fatal(err)
	}
	recipetest.WantOutcome(t, "release of a lock that is gone", h.Release(t.Context()), nil)
	recipetest.WantOutcome(t, "and once more", h.Release(t.Context()), impls.ErrLost)
	<-h.Lost() // at the next renewal
	next, err := c.Acquire(t.Context(), "silent", recipetest.NewAttempt())
	recipetest.WantOutcome(t, "acquire with a new session", err, nil)
	recipetest.WantOutcome(t, "release", next.Release(t.Context()), nil)
}

// leftBehind: where the answer to the first request was lost the key stays, and
// Unlock would not delete it.
func leftBehind(t *testing.T, addresses []string) {
	const key = "left behind"
	c := openLibrary(t, addresses)
	a := recipetest.NewAttempt()
	c.claims[a] = claim{key: key, session: c.session}
	if _, err := c.api.Put(t.Context(), lockKey(key, c.session), "", clientv3.WithLease(c.session.lease)); err != nil {
		t.Fatal(err)
	}
	if err := concurrency.NewMutex(c.lib, libraryPrefix(key)).Unlock(t.Context()); !errors.Is(err, concurrency.ErrLockReleased) {
		t.Errorf("the library's release: %v, want its word that there is nothing to release", err)
	}
	recipetest.WantOutcome(t, "clean up", c.Cleanup(t.Context(), key, a), nil)
	recipetest.WantOutcome(t, "and once more", c.Cleanup(t.Context(), key, a), impls.ErrLost)
	select {
	case <-c.session.alive.Done():
		t.Error("the session ended although the key was found")
	default:
	}
}

// mayStillCome: where no key is found one may be on its way, so that the lease
// is revoked, and a late request fails.
func mayStillCome(t *testing.T, addresses []string) {
	const key = "late"
	c := openLibrary(t, addresses)
	a, late := recipetest.NewAttempt(), concurrency.NewMutex(c.lib, libraryPrefix(key))
	other, err := c.Acquire(t.Context(), "other", recipetest.NewAttempt())
	recipetest.WantOutcome(t, "acquire", err, nil)
	c.claims[a] = claim{key: key, session: c.session}
	recipetest.WantOutcome(t, "clean up", c.Cleanup(t.Context(), key, a), impls.ErrLost)
	if err := late.TryLock(t.Context()); err == nil {
		t.Error("a late request was granted the lock")
	}
	<-other.Lost()
	h, err := c.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try with a new session", err, nil)
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
}

// givesUp: a wait whose ctx ends deletes its key, and owes nothing.
func givesUp(t *testing.T, addresses []string) {
	const key = "gives up"
	gate := recipetest.NewGate()
	holder, waiter := openLibrary(t, addresses), openAs(t, clientMutex{}, addresses, gate)
	h, err := holder.Acquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "acquire", err, nil)
	ctx, cancel := context.WithCancel(t.Context())
	got := recipetest.Begin(t, gate, impls.StepWaiting, 1, func() (impls.Hold, error) { return waiter.Acquire(ctx, key, recipetest.NewAttempt()) })
	cancel()
	recipetest.WantOutcome(t, "the wait", (<-got).Err, impls.ErrFailed)
	resp, err := holder.api.Get(t.Context(), libraryPrefix(key), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || resp.Count != 1 {
		t.Errorf("%d keys in the queue, want the holder's: %v", resp.Count, err)
	}
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
}

// lostWhileWaiting: a waiter whose lease ends does not take its predecessor's
// departure for a grant.
func lostWhileWaiting(t *testing.T, addresses []string) {
	const key = "lost while waiting"
	gate := recipetest.NewGate()
	holder, waiter := openLibrary(t, addresses), openAs(t, clientMutex{}, addresses, gate).(*libraryClient)
	h, err := holder.Acquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "acquire", err, nil)
	lease := waiter.session.lease
	got := acquiring(t, gate, impls.StepWaiting, 1, waiter, key)
	if _, err := holder.api.Revoke(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
	recipetest.WantOutcome(t, "the wait", (<-got).Err, impls.ErrFailed)
}

// ownClock: the session's end moves with the library's renewals, by the
// client's own clock.
func ownClock(t *testing.T, addresses []string) {
	cfg := config(addresses)
	cfg.Clock = ahead{cfg.Clock}
	opened := cfg.Clock.Now()
	c := recipetest.Open(t, clientMutex{}, cfg)
	h, err := c.Acquire(t.Context(), "clock", recipetest.NewAttempt())
	recipetest.WantOutcome(t, "acquire", err, nil)
	for first := opened.Add(cfg.TTL); !h.LeaseEnd().After(first); {
		if err := cfg.Clock.Sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatalf("the lease's end stayed at %v: %v", h.LeaseEnd().Sub(opened), err)
		}
	}
	if end, latest := h.LeaseEnd(), cfg.Clock.Now().Add(cfg.TTL); end.After(latest) {
		t.Errorf("the lease ends %v after what can be", end.Sub(latest))
	}
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
}

// ahead is a clock that is an hour fast.
type ahead struct{ impls.Clock }

func (a ahead) Now() time.Time { return a.Clock.Now().Add(time.Hour) }
