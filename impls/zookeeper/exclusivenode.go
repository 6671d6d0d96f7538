package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
)

// exclusiveNode is zookeeper/exclusive-node: one node that all clients try to
// create and watch.
//
// Document: a collection of articles on three ways to build a lock: the
// ZooKeeper lock that is exclusive, beside one that keeps an order. The
// articles call the nodes of all ZooKeeper locks ephemeral.
//
//	acquire  create the lock's node, ephemeral; held if created; otherwise watch
//	         whether it exists, and try again when it is gone, as all waiters do
//	release  delete the node, and again after a lost connection
//
// Round trips: 1 to acquire, 1 to release, each a quorum write; a waiter adds,
// at every release, its watch and another try.
// Bound: the session, which the driver renews. Takeover: the TTL and up to
// three quarters of it, since sessions expire at whole ticks.
// Guarantee: one holder at a time while its session lives. No order, no tokens.
// Failure: each release wakes all waiters, and one of them wins. The deletion
// does not check the owner: a holder that returns after its session expired
// frees its successor's lock, and its release succeeds.
//
// The node is empty, but has its session as owner: Cleanup compares that, and
// this client's record of its attempts. Between its check and its deletion
// another client's late release may free the node for a third client, whose
// node it then deletes.
type exclusiveNode struct{ ephemeral }

// stepWatch: the lock is busy, and not watched yet.
const stepWatch impls.Step = "watch"

func (exclusiveNode) Info() impls.Info {
	return describe(impls.Info{
		ID:         "zookeeper/exclusive-node",
		Summary:    "one ephemeral node, created by the first client; all waiters watch it; release deletes it without checking the owner",
		Promise:    "one holder at a time while its session lives",
		Document:   "a collection of articles on three ways to build a lock: the ZooKeeper lock that is kept exclusive",
		Fails:      "each release wakes every waiter, and a late holder's release frees its successor's lock",
		RoundTrips: 2,
		Properties: []impls.Property{
			impls.Exclusive, impls.DeadlockFree, impls.Available, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.CleansUp, impls.SignalsLoss, impls.Once,
		},
		Steps: []impls.Step{stepWatch},
	})
}

// Prepare creates the parent of all locks.
func (exclusiveNode) Prepare(ctx context.Context, cfg impls.Config, _ []string) error {
	return prepare(ctx, cfg, "", nil)
}

func (exclusiveNode) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &exclusiveClient{client: c, may: impls.Claims[mayHold]{}}, nil
}

type exclusiveClient struct {
	*client
	may impls.Claims[mayHold] // the attempts that may hold
}

// mayHold is the client's record of an attempt.
type mayHold struct {
	key  string
	held *session // of the grant; nil before
}

// agreed is the lock's node.
func agreed(key string) string { return parent("agreed", key) }

func (c *exclusiveClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.RetryUntilAcquired(ctx, key, a, c.TryAcquire, func(ctx context.Context) error {
		c.driver.cfg.Reach(ctx, stepWatch)
		// A waiter has nothing on the servers, so the loss of its session leaves
		// nothing behind.
		return c.watch(ctx, agreed(key))
	})
}

func (c *exclusiveClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	h, err := c.try(ctx, key, a)
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", key, err)
	}
	return h, nil
}

func (c *exclusiveClient) try(ctx context.Context, key string, a impls.Attempt) (*hold, error) {
	s, err := c.live(ctx)
	if err != nil {
		return nil, err
	}
	m := mayHold{key: key}
	switch _, err = c.create(ctx, agreed(key), 0); {
	case err == nil:
		m.held = s
	case errors.Is(err, zk.ErrNodeExists):
		err = impls.ErrBusy
	}
	if err := c.may.Took(a, m, err); err != nil {
		return nil, err
	}
	h := newHold(s, key, a, 0, func(ctx context.Context) error {
		return c.may.Finish(ctx, a, func(ctx context.Context, _ mayHold) error { return c.removeAnyway(ctx, s, agreed(key)) })
	})
	h.granted()
	return &h, nil
}

// removeAnyway deletes the node of any owner, and retries after a lost
// connection for one request timeout, as the articles' release does: nil,
// ErrLost, or unknown. The retries make a late release harmful: the first one
// after a session expired fails on a closed connection.
func (c *exclusiveClient) removeAnyway(ctx context.Context, s *session, path string) error {
	ctx, cancel := context.WithTimeout(ctx, c.driver.cfg.Timeout)
	defer cancel()
	return c.repeat(ctx, s, deletion(path), true)
}

// watch returns nil when the node changed, the watch ended, or the node does
// not exist; and ctx's error when ctx ends.
func (c *exclusiveClient) watch(ctx context.Context, path string) error {
	for {
		// Without a node there is nothing to wait for.
		events, err := do(ctx, c.driver, func(conn *zk.Conn) (<-chan zk.Event, error) {
			there, _, events, err := conn.ExistsW(path)
			if !there {
				events = nil
			}
			return events, err
		})
		switch {
		case err == nil && events == nil:
			return nil
		case err == nil:
			return c.await(ctx, nil, events)
		case ctx.Err() != nil:
			return ctx.Err()
		case !passing(err) && !errors.Is(err, zk.ErrSessionExpired):
			return err
		}
		if err := c.driver.cfg.Clock.Sleep(ctx, retryPause); err != nil {
			return err
		}
	}
}

// Cleanup deletes the node if the attempt may have created it and our session
// owns it.
func (c *exclusiveClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return impls.Settled("clean up", key, c.may.Finish(ctx, a, func(ctx context.Context, _ mayHold) error {
		for other, m := range c.may {
			if m.held != nil && !m.held.isLost() && m.key == key && other != a {
				// Our session owns the nodes of both.
				return fmt.Errorf("%w: attempt %s of this client was granted the lock, and the node does not contain its attempt", impls.ErrUnknown, other)
			}
		}
		return c.removeOurs(ctx, agreed(key))
	}))
}

func (c *exclusiveClient) removeOurs(ctx context.Context, path string) error {
	if _, err := do(ctx, c.driver, func(conn *zk.Conn) (string, error) { return conn.Sync(path) }); err != nil {
		return err
	}
	ours, err := do(ctx, c.driver, func(conn *zk.Conn) (bool, error) {
		there, stat, err := conn.Exists(path)
		return there && stat.EphemeralOwner == conn.SessionID(), err
	})
	if err == nil && !ours {
		return impls.ErrLost
	}
	if err != nil {
		return err
	}
	return c.remove(ctx, path)
}
