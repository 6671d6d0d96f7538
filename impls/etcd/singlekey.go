package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/impls"
)

// singleKey is etcd/single-key: one key that all clients try to write and
// watch.
//
// Document: a blog's account of locks by polling and by watching: the watching
// lock, before the queue that it proposes as a cure.
//
//	acquire  put the lock's key, bound to the client's lease, unless it exists; held if
//	         written; otherwise watch that key, and try again when it is deleted, as
//	         all waiters do
//	release  delete the key
//
// Round trips: 1 to acquire, 1 to release, each a write to disk by a quorum; a
// waiter adds, at every release, its watch, a read and another try.
// Bound: the session, a lease that the client renews three times per TTL.
// Takeover: the TTL, and up to a second until the server has revoked the lease.
// Guarantee: one holder at a time while its lease lives. No order, no tokens.
// Failure: each release wakes all waiters, and one of them wins. The deletion
// does not check the owner: a holder that returns after its lease ended frees
// its successor's lock, and its release succeeds.
//
// The key stores only its lease, so Cleanup uses this client's record of its
// attempts: it deletes the key if it belongs to the lease of the attempt. The
// transaction that rejects an attempt after its clean-up is ours; the document
// does not handle lost answers.
type singleKey struct{ leased }

// stepWatch: the lock is busy, and not watched yet.
const stepWatch impls.Step = "watch"

func (singleKey) Info() impls.Info {
	return describe(impls.Info{
		ID:       "etcd/single-key",
		Summary:  "one lease per client; one key, written if it is absent; all waiters watch it; release deletes it without checking the owner",
		Promise:  "one holder at a time while its lease lives",
		Document: "a blog's account of locks by polling and by watching: the watching lock, before its cure for the herd",
		Fails:    "each release wakes every waiter, and a late holder's release frees its successor's lock",
		Properties: []impls.Property{
			impls.Exclusive, impls.DeadlockFree, impls.Available, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.CleansUp, impls.SignalsLoss, impls.Once,
		},
		Steps:     []impls.Step{stepWatch, impls.StepRenewing},
		LockDelay: true,
	})
}

func (singleKey) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	return &singleClient{client: c, may: impls.Claims[mayHold]{}}, nil
}

type singleClient struct {
	*client
	may impls.Claims[mayHold] // the attempts that may hold
}

// mayHold is the client's record of an attempt.
type mayHold struct {
	key      string
	session  *session // of its key
	revision int64    // of its key, after a grant
}

// single is the lock's key.
func single(key string) string { return place("single", key) }

func (c *singleClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.RetryUntilAcquired(ctx, key, a, c.TryAcquire, func(ctx context.Context) error {
		c.cfg.Reach(ctx, stepWatch)
		// A waiter has nothing on the server, so the loss of its session leaves
		// nothing behind.
		return c.watch(ctx, c.background, single(key))
	})
}

func (c *singleClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	h, err := c.try(ctx, key, a)
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", key, err)
	}
	return h, nil
}

func (c *singleClient) try(ctx context.Context, key string, a impls.Attempt) (*hold, error) {
	s, err := c.live(ctx)
	if err != nil {
		return nil, err
	}
	revision, err := c.put(ctx, s, a, absent(single(key)), single(key))
	if err := c.may.Took(a, mayHold{key, s, revision}, err); err != nil {
		return nil, err
	}
	return newHold(s, key, a, 0, func(ctx context.Context) error {
		return c.may.Finish(ctx, a, func(ctx context.Context, _ mayHold) error { return c.remove(ctx, single(key)) })
	}).granted(), nil
}

// Cleanup deletes the key if it belongs to the lease of the attempt, or
// prevents that it is ever written.
func (c *singleClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return impls.Settled("clean up", key, c.may.Finish(ctx, a, func(ctx context.Context, m mayHold) error {
		match := []clientv3.Cmp{clientv3.Compare(clientv3.LeaseValue(single(key)), "=", m.session.lease)}
		for other, o := range c.may {
			if other != a && o.key == key && o.revision != 0 { // another hold of this client has the same lease
				match = append(match, clientv3.Compare(clientv3.CreateRevision(single(key)), "!=", o.revision))
			}
		}
		return c.take(ctx, m.session, true, a, single(key), match...)
	}))
}
