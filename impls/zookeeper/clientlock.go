package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
)

// clientLock is zookeeper/client-lock: the driver's own Lock, one for each
// attempt.
//
// Document: ZooKeeper's client library for Go.
//
//	acquire  LockWithData: create an ephemeral, numbered node below the lock's own,
//	         with a guid in its name and the attempt as data; list the nodes; held if
//	         none is lower; otherwise watch the node before it, and list again when
//	         that is gone
//	release  Unlock: delete the node
//
// Round trips: 2 to acquire, 1 to release; the first and the last are quorum
// writes; a waiter adds its watch and a list.
// Bound: the session, which the driver renews. Takeover: the TTL and up to
// three quarters of it, since sessions expire at whole ticks.
// Guarantee: one holder at a time, in order of arrival, while no session
// expires and no node is deleted during a wait. No tokens, since the number of
// the node is hidden.
// Failure: where it differs from zookeeper/sequence:
//
//   - It does not check that its own node still exists: a waiter whose node is
//     gone takes the departure of the previous node for a grant, and holds
//     without a node, and so does the next. Here such a hold is lost from the
//     start if the session expired; if only the node is gone, the loss is not
//     detected.
//   - It forgets its node when a request after the creation fails, also when
//     the queue has an unexpected name: the node stays and blocks other clients
//     until the session ends.
//   - It has no try and no context: an abandoned acquire continues, keeps its
//     place and takes the lock in its turn.
//
// So the outcome of an acquire that ended by its ctx, or by any error, is
// unknown, and Cleanup reads every node of the queue to find and delete the
// attempt's; the abandoned goroutine ends when the node that it watches is
// gone. Until the library has created the node or has failed, Cleanup is
// unknown too.
type clientLock struct{ ephemeral }

const kindLibrary = "client"

func (clientLock) Info() impls.Info {
	return describe(impls.Info{
		ID:         "zookeeper/client-lock",
		Summary:    "the client library's Lock: an ephemeral sequential node per attempt; each waiter watches the node before its own",
		Promise:    "one holder at a time, in order of arrival, while no waiter loses its node or its session",
		Document:   "ZooKeeper's client library for Go",
		Fails:      "a waiter that lost its node holds without one; an error after the creation leaves the node; no try, and a wait cannot be ended",
		RoundTrips: 3,
		Properties: []impls.Property{
			impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Available, impls.Blocking, impls.Expiry,
			impls.Ordered, impls.ReportsLost, impls.CleansUp, impls.SignalsLoss, impls.Once,
		},
	})
}

func (clientLock) Prepare(ctx context.Context, cfg impls.Config, keys []string) error {
	return prepare(ctx, cfg, kindLibrary, keys)
}

func (clientLock) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	steps := make(chan impls.Step, 16) // more than one request and one event can produce
	d, err := open(ctx, cfg, steps)
	if err != nil {
		return nil, err
	}
	return &libraryClient{client: &client{d}, steps: steps, claims: impls.Claims[*claim]{}}, nil
}

type libraryClient struct {
	*client
	steps  <-chan impls.Step // of the library's waiting
	claims impls.Claims[*claim]
}

// claim is the client's record of an attempt that may have a node.
type claim struct {
	lock *zk.Lock
	done chan struct{} // closed when Lock has returned
	err  error         // the result of Lock, once done is closed
	seen bool          // a clean-up has found its node and tried to delete it
}

// ended reports whether Lock has returned.
func (m *claim) ended() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

func (c *libraryClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	s, err := c.live(ctx)
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", key, err)
	}
	c.reach(ctx, false) // drop the steps of an abandoned attempt
	own := &claim{lock: zk.NewLock(c.driver.conn, parent(kindLibrary, key), openACL()), done: make(chan struct{})}
	c.claims[a] = own
	go func() {
		own.err = own.lock.LockWithData([]byte(a.String()))
		close(own.done)
	}()
	for {
		select {
		case step := <-c.steps:
			c.driver.cfg.Reach(ctx, step)
			continue
		case <-own.done:
			c.reach(ctx, true)
			if own.err == nil {
				return c.held(s, key, a, own), nil
			}
			return nil, fmt.Errorf("acquire %s: %w: the library may have left a node: %w", key, impls.ErrUnknown, own.err)
		case <-ctx.Done():
			return nil, fmt.Errorf("acquire %s: %w: the library cannot be stopped: %w", key, impls.ErrUnknown, ctx.Err())
		}
	}
}

// reach takes the steps that the library has reached so far, and passes them on if
// report is set.
func (c *libraryClient) reach(ctx context.Context, report bool) {
	for {
		select {
		case step := <-c.steps:
			if report {
				c.driver.cfg.Reach(ctx, step)
			}
		default:
			return
		}
	}
}

// held is the hold of a grant by the library, with the session that the attempt
// began with: if that has expired meanwhile, the hold is lost from the start.
func (c *libraryClient) held(s *session, key string, a impls.Attempt, own *claim) *hold {
	unlock := func(*zk.Conn) (struct{}, error) { return struct{}{}, own.lock.Unlock() }
	h := newHold(s, key, a, 0, func(ctx context.Context) error {
		return c.claims.Finish(ctx, a, func(ctx context.Context, _ *claim) error { return c.removeSurely(ctx, s, unlock) })
	})
	h.granted()
	return &h
}

// TryAcquire is not supported by the library.
func (c *libraryClient) TryAcquire(_ context.Context, key string, _ impls.Attempt) (impls.Hold, error) {
	return nil, fmt.Errorf("try %s: the library's lock can only wait: %w", key, errors.ErrUnsupported)
}

// Cleanup looks for the attempt's node and deletes it.
func (c *libraryClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	own := c.claims[a]
	settled := own == nil || own.ended() // checked before the search: a later node is still to come
	path, err := c.find(ctx, parent(kindLibrary, key), a)
	switch {
	case err != nil:
	case path != "":
		if own != nil {
			own.seen = true
		}
		err = c.removeSurely(ctx, c.driver.current(), deletion(path))
	case own != nil && own.seen:
		// It is gone since: by our deletion, or with the session.
	case settled:
		err = impls.ErrLost
	default:
		err = fmt.Errorf("%w: the library may still create its node", impls.ErrUnknown)
	}
	return impls.Settled("clean up", key, c.claims.Settle(a, err))
}

// find returns the path of an attempt's node, "" if there is none.
func (c *libraryClient) find(ctx context.Context, dir string, a impls.Attempt) (string, error) {
	names, err := c.list(ctx, dir)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		path := dir + "/" + name
		data, err := do(ctx, c.driver, func(conn *zk.Conn) ([]byte, error) {
			data, _, err := conn.Get(path)
			return data, err
		})
		switch {
		case err == nil && string(data) == a.String():
			return path, nil
		case err != nil && !errors.Is(err, zk.ErrNoNode):
			return "", err
		}
	}
	return "", nil
}
