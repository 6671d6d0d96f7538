package etcd

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/impls"
)

// singleKey is etcd/single-key: one key that everybody wants and everybody
// watches.
//
//	acquire  put the lock's key, bound to the client's lease, unless it is there;
//	         written: ours. Otherwise watch that key, and when it is deleted try
//	         again, with all the others
//	release  delete the key
//
// Round trips: 1 to acquire, 1 to release, each a write that a quorum has on
// disk; a waiter adds, at every release, its watch, a read and another try.
// Bound: the session, a lease that the client renews three times in a TTL.
// Takeover: the TTL, and up to a second until the server has noticed and
// revoked the lease.
//
// It promises one holder at a time while its lease lives; nothing about order,
// and no tokens. It fails by the herd: each release wakes all waiters, of whom
// one wins. And the deletion asks nobody whose the key is, so that a holder who
// comes back after its lease ended frees its successor's lock, and is told that
// all went well.
//
// The key stores nothing but its lease, so that Cleanup goes by what this client
// remembers of its own attempts: it deletes the key if it hangs on the lease
// that the attempt used, and knows nothing of another client's attempts. That a
// transaction refuses an attempt which was cleaned up before is ours; the
// document does not care for answers that are lost.
//
// Source: a blog's account of locks by polling and by watching, its watching lock
// before the queue that it proposes against the herd.
type singleKey struct{ leased }

// stepWatch: the lock was refused, and is not watched yet.
const stepWatch impls.Step = "watch"

func (singleKey) Info() impls.Info {
	return describe(impls.Info{
		ID:       "etcd/single-key",
		Summary:  "one lease per client; one key, written if it is absent; all waiters watch it; release deletes it, whosever it is",
		Promise:  "one holder at a time while its lease lives",
		Document: "a blog's account of locks by polling and by watching: the watching lock, before its cure for the herd",
		Fails:    "each release wakes every waiter, and a late holder's release frees its successor's lock",
		Has: []impls.Property{
			impls.Exclusive, impls.DeadlockFree, impls.Available, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.LeavesClean, impls.TellsLoss, impls.Once,
		},
		Steps: []impls.Step{stepWatch},
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
	return &singleClient{client: c, may: map[impls.Attempt]*mayHold{}}, nil
}

type singleClient struct {
	*client
	may map[impls.Attempt]*mayHold // the attempts that may hold
}

// mayHold is what the client remembers of an attempt.
type mayHold struct {
	key      string
	session  *session // which its key would hang on
	revision int64    // of its key, once it was granted the lock
}

// single is the lock's key.
func single(key string) string { return place("single", key) }

func (c *singleClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	for {
		h, err := c.try(ctx, key, a)
		if err == nil {
			return h, nil
		}
		if !errors.Is(err, impls.ErrBusy) {
			return nil, fmt.Errorf("acquire %s: %w", key, err)
		}
		c.cfg.Reach(ctx, stepWatch)
		// A waiter has nothing on the server, so that its session may come and
		// go, and its end leaves nothing open.
		if err := c.watch(ctx, c.background, single(key)); err != nil {
			return nil, fmt.Errorf("acquire %s: gave up waiting: %w: %w", key, impls.ErrFailed, err)
		}
	}
}

func (c *singleClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	h, err := c.try(ctx, key, a)
	if err != nil {
		return nil, fmt.Errorf("try %s: %w", key, err)
	}
	return h, nil
}

func (c *singleClient) try(ctx context.Context, key string, a impls.Attempt) (*hold, error) {
	s, err := c.live(ctx)
	if err != nil {
		return nil, err
	}
	m := &mayHold{key: key, session: s}
	c.may[a] = m
	if m.revision, err = c.put(ctx, s, a, absent(single(key)), single(key)); err != nil {
		if !errors.Is(err, impls.ErrUnknown) {
			delete(c.may, a)
		}
		return nil, err
	}
	free := func(ctx context.Context) error {
		if c.may[a] == nil {
			return impls.ErrLost // as its clean-up has found
		}
		return c.settle(a, c.remove(ctx, single(key)))
	}
	return &hold{session: s, key: key, attempt: a, free: free}, nil
}

// settle forgets an attempt of which nothing can be left.
func (c *singleClient) settle(a impls.Attempt, err error) error {
	if impls.Definite(err) {
		delete(c.may, a)
	}
	return err
}

// Cleanup deletes the key if it hangs on the lease of the attempt, or makes
// sure that it never will.
func (c *singleClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	m := c.may[a]
	if m == nil {
		return impls.ErrLost
	}
	mine := []clientv3.Cmp{clientv3.Compare(clientv3.LeaseValue(single(key)), "=", m.session.lease)}
	for other, o := range c.may {
		if other != a && o.key == key && o.revision != 0 { // what this client holds hangs on the same lease
			mine = append(mine, clientv3.Compare(clientv3.CreateRevision(single(key)), "!=", o.revision))
		}
	}
	err := c.settle(a, c.take(ctx, m.session, true, a, single(key), mine...))
	if impls.Definite(err) {
		return err
	}
	return fmt.Errorf("clean up %s: %w", key, err)
}
