package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
)

// clientLock is zookeeper/client-lock: the driver's own Lock, as its users use
// it, one for each attempt.
//
//	acquire  LockWithData: create a node below the lock's own, ephemeral, with a guid
//	         in its name, the attempt in it, and numbered by the server; list the
//	         nodes; none lower: ours. Otherwise watch the node before ours, and list
//	         again when it is gone
//	release  Unlock: delete the node
//
// Round trips: 2 to acquire, 1 to release, the first and the last a write of a
// quorum; a waiter adds its watch and a list.
// Bound: the session, which the driver keeps alive. Takeover: the TTL, and up to
// three quarters of it, for sessions expire by whole ticks.
//
// It promises one holder at a time, in order of arrival, as long as no session
// expires and no node is taken away in the middle of a wait; no tokens, for the
// number of its node is hidden. Where it falls short of zookeeper/sequence:
//
//   - It does not look whether its own node is still there: a waiter whose node is
//     gone takes the departure of the one before for a grant, and holds without a
//     node, and so does the next. Here such a hold is lost from the start if the
//     session expired; if the node alone is gone, nobody tells.
//   - It forgets its node when a request after the creation fails, an unexpected
//     name in the queue included: the node stays, and holds up the others, until the
//     session ends.
//   - It has no try, and no context: what a caller gives up goes on, keeps its place
//     and takes the lock when it is its turn.
//
// So an acquire that ended by its ctx, or by any error, is a doubt, and Cleanup
// reads every node of the queue until it finds the attempt's, and deletes that; the
// goroutine that was given up ends when the node is gone that it watches. Until the
// library has created the node, or has given up, Cleanup answers that it does not
// know.
//
// Source: ZooKeeper's client library for Go.
type clientLock struct{ ephemeral }

const kindLibrary = "client"

func (clientLock) Info() impls.Info {
	return describe(impls.Info{
		ID:         "zookeeper/client-lock",
		Summary:    "the client library's Lock: an ephemeral sequential node per attempt; each waiter watches the node before its own",
		Promise:    "one holder at a time, in order of arrival, as long as no waiter loses its node or its session",
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
	steps := make(chan impls.Step, 16) // many more than one request and one event can make
	d, err := open(ctx, cfg, steps)
	if err != nil {
		return nil, err
	}
	return &libraryClient{client: &client{d}, steps: steps, claims: impls.Claims[*claim]{}}, nil
}

type libraryClient struct {
	*client
	steps  <-chan impls.Step // of the library's wait
	claims impls.Claims[*claim]
}

// claim is what the client remembers of an attempt that may have a node.
type claim struct {
	lock *zk.Lock
	done chan struct{} // closed when Lock has returned
	err  error         // what it returned, once done
	seen bool          // a clean-up has found its node, and tried to delete it
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
	c.reach(ctx, false) // what an attempt that was given up has left
	mine := &claim{lock: zk.NewLock(c.driver.conn, parent(kindLibrary, key), anybody()), done: make(chan struct{})}
	c.claims[a] = mine
	go func() {
		mine.err = mine.lock.LockWithData([]byte(a.String()))
		close(mine.done)
	}()
	for {
		select {
		case step := <-c.steps:
			c.driver.cfg.Reach(ctx, step)
			continue
		case <-mine.done:
			c.reach(ctx, true)
			if mine.err == nil {
				return c.held(s, key, a, mine), nil
			}
			return nil, fmt.Errorf("acquire %s: %w: the library may have left a node: %w", key, impls.ErrUnknown, mine.err)
		case <-ctx.Done():
			return nil, fmt.Errorf("acquire %s: %w: the library cannot be told to stop: %w", key, impls.ErrUnknown, ctx.Err())
		}
	}
}

// reach takes the steps that the library has come to by now, and tells of them
// if asked to.
func (c *libraryClient) reach(ctx context.Context, tell bool) {
	for {
		select {
		case step := <-c.steps:
			if tell {
				c.driver.cfg.Reach(ctx, step)
			}
		default:
			return
		}
	}
}

// held is what the library takes for a grant, of the session that the attempt
// began with: if that has expired meanwhile, the hold is lost from the start.
func (c *libraryClient) held(s *session, key string, a impls.Attempt, mine *claim) *hold {
	unlock := func(*zk.Conn) (struct{}, error) { return struct{}{}, mine.lock.Unlock() }
	h := newHold(s, key, a, 0, func(ctx context.Context) error {
		return c.claims.Finish(ctx, a, func(ctx context.Context, _ *claim) error { return c.removeSurely(ctx, s, unlock) })
	})
	h.granted()
	return &h
}

// TryAcquire is not supported: the library's lock has none.
func (c *libraryClient) TryAcquire(_ context.Context, key string, _ impls.Attempt) (impls.Hold, error) {
	return nil, fmt.Errorf("try %s: the library's lock can only wait: %w", key, errors.ErrUnsupported)
}

// Cleanup looks for the attempt's node and deletes it.
func (c *libraryClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	mine := c.claims[a]
	settled := mine == nil || mine.ended() // before the look: what is created after it is still to come
	path, err := c.find(ctx, parent(kindLibrary, key), a)
	switch {
	case err != nil:
	case path != "":
		if mine != nil {
			mine.seen = true
		}
		err = c.removeSurely(ctx, c.driver.current(), deletion(path))
	case mine != nil && mine.seen:
		// It is gone since: by our deletion, if not with the session.
	case settled:
		err = impls.ErrLost
	default:
		err = fmt.Errorf("%w: the library is about to create its node", impls.ErrUnknown)
	}
	return impls.Settled("clean up", key, c.claims.Settle(a, err))
}

// find returns the path of an attempt's node, "" if it is not there.
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
