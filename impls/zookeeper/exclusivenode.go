package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
)

// exclusiveNode is zookeeper/exclusive-node: one node that everybody wants and
// everybody watches.
//
//	acquire  create the lock's node, ephemeral; created: ours. Otherwise watch
//	         whether it exists, and when it is gone try again, with all the others
//	release  delete the node, and again after a lost connection
//
// Round trips: 1 to acquire, 1 to release, each a write of a quorum; a waiter
// adds, at every release, its watch and another try.
// Bound: the session, which the driver keeps alive. Takeover: the TTL, and up to
// three quarters of it, for sessions expire by whole ticks.
//
// It promises one holder at a time while its session lives; nothing about order,
// and no tokens. It fails by the herd: each release wakes all waiters, of whom one
// wins. And the deletion asks nobody whose the node is, so that a holder who comes
// back after its session expired frees its successor's lock, and is told that all
// went well.
//
// The node is empty, but the server notes which session it hangs on. So Cleanup
// goes by that, and by what this client remembers of its own attempts; it knows
// nothing of another client's. Between its look and its deletion the late release
// of somebody else may put a third one's node there, which it would delete.
//
// Source: a collection of articles on three ways to build a lock, where a lock that
// is kept exclusive stands beside one that keeps an order; that the node is ephemeral
// they say of all locks in ZooKeeper.
type exclusiveNode struct{ ephemeral }

// stepWatch: the lock was refused, and is not watched yet.
const stepWatch impls.Step = "watch"

func (exclusiveNode) Info() impls.Info {
	return describe(impls.Info{
		ID:         "zookeeper/exclusive-node",
		Summary:    "one ephemeral node, created by whoever comes first; all waiters watch it; release deletes it, whosever it is",
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

// Prepare creates the node below which the locks stand.
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

// mayHold is what the client remembers of an attempt.
type mayHold struct {
	key  string
	held *session // by which it was granted the lock; nil before
}

// agreed is the lock's node.
func agreed(key string) string { return parent("agreed", key) }

func (c *exclusiveClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.RetryUntilAcquired(ctx, key, a, c.TryAcquire, func(ctx context.Context) error {
		c.driver.cfg.Reach(ctx, stepWatch)
		// A waiter has nothing on the servers, so that its session may come and
		// go, and its end leaves nothing open.
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

// removeAnyway deletes the node, whosever it is, and tries again after a lost
// connection for as long as a request may take, as the articles' own release does:
// nil, ErrLost, or a doubt. Their retries are what makes a late release fatal, for
// the first one after a session expired meets a closed connection.
func (c *exclusiveClient) removeAnyway(ctx context.Context, s *session, path string) error {
	ctx, cancel := context.WithTimeout(ctx, c.driver.cfg.Timeout)
	defer cancel()
	return c.repeat(ctx, s, deletion(path), true)
}

// watch returns nil when something happened to the node, or the watch ended, or
// the node is not there; and ctx's error when that ends.
func (c *exclusiveClient) watch(ctx context.Context, path string) error {
	for {
		// No events if the node is not there: nobody waits for its creation.
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

// Cleanup deletes the node if the attempt may have created it and it hangs on
// our session.
func (c *exclusiveClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return impls.Settled("clean up", key, c.may.Finish(ctx, a, func(ctx context.Context, _ mayHold) error {
		for other, m := range c.may {
			if m.held != nil && !m.held.isLost() && m.key == key && other != a {
				// Both would hang on our session.
				return fmt.Errorf("%w: this client was granted it as attempt %s, and the node does not tell whose it is", impls.ErrUnknown, other)
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
