package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
)

// sequence is zookeeper/sequence: a queue of ephemeral nodes that the server
// numbers.
//
//	acquire  create a node below the lock's own, ephemeral, named by the attempt
//	         and numbered by the server; list the nodes; the lowest number: ours.
//	         Otherwise watch the node before ours, that one alone, and list again
//	         when it is gone
//	release  delete the node
//
// The attempt in the name lets a client find its node if the answer to the
// creation was lost. Nodes are compared by number only, and a client believes
// no listing in which its own node is missing.
//
// Round trips: 2 to acquire, 1 to release, the first and the last a write of a
// quorum; a waiter adds its watch and a list.
// Bound: the session, which the driver keeps alive. Takeover: the TTL, and up to
// three quarters of it, for sessions expire by whole ticks, of which a TTL may
// have as few as two.
//
// It promises one holder at a time, in order of arrival, while its session
// lives, and a fencing token, the number plus one, as long as the lock's own
// node lives: deleting that begins the numbers anew, which nothing here does,
// and after 2^31 nodes they overflow, which is an error. It fails when a holder
// that was stopped or cut off goes on although its session expired, and nothing
// checks its token: Lost tells it, but cannot stop it.
//
// Source: ZooKeeper's recipe for locks, with protected creation.
type sequence struct{}

func (sequence) Info() impls.Info {
	return impls.Info{
		ID:         "zookeeper/sequence",
		Backend:    "zookeeper",
		Summary:    "an ephemeral sequential node per attempt; each waiter watches the node before its own",
		Promise:    "one holder at a time, in order of arrival, while its session lives; tokens grow with every grant while the lock's node is not deleted",
		Document:   "ZooKeeper's recipe for locks, with protected creation",
		Bound:      impls.BoundSession,
		Fencing:    true,
		Topologies: []string{"single", "quorum"},
		RoundTrips: 3,
		Requests:   []string{"packets_received"},
		// Sessions expire at the next tick, which is half a TTL at most, and
		// a leader hears of a session from the other servers within half a
		// tick.
		Takeover: func(ttl time.Duration) time.Duration { return ttl + ttl/2 + ttl/4 },
	}
}

// CheckTTL takes what servers with default limits make a session of unchanged.
func (sequence) CheckTTL(ttl time.Duration, lim impls.Limits) error {
	least, most := 2*lim.TickTime, 20*lim.TickTime
	if ttl < least || ttl > most || ttl%time.Millisecond != 0 {
		return fmt.Errorf("TTL %v: ZooKeeper serves whole milliseconds from %v to %v, 2 to 20 ticks of %v", ttl, least, most, lim.TickTime)
	}
	return nil
}

const root = "/lockbench"

// parent is the lock's own node.
func parent(key string) string { return root + "/lock-" + url.PathEscape(key) }

// preparing is how many parents are created at once.
const preparing = 32

// Prepare creates the locks' own nodes. They are persistent and stay.
func (sequence) Prepare(ctx context.Context, cfg impls.Config, keys []string) error {
	d, err := open(ctx, cfg)
	if err != nil {
		return err
	}
	defer d.close(true)
	create := func(path string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := d.conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("create %s: %w", path, err)
		}
		return nil
	}
	// The driver's calls have no time limit; without a connection they end.
	defer context.AfterFunc(ctx, func() { d.close(false) })()
	if err := create(root); err != nil {
		return err
	}
	errs := make([]error, min(preparing, len(keys)))
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			for k := i; k < len(keys) && errs[i] == nil; k += preparing {
				errs[i] = create(parent(keys[k]))
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func (sequence) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	d, err := open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &client{driver: d}, nil
}

type client struct{ driver *driver }

// Close ends the connection. The session, and whatever nodes hang on it, live
// on until their time is over.
func (c *client) Close() error {
	c.driver.close(false)
	return nil
}

func (c *client) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	h, err := c.enqueue(ctx, key, a)
	if err == nil {
		err = c.wait(ctx, h)
	}
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", key, err)
	}
	return h, nil
}

// TryAcquire enters the queue and leaves it again if it is not the first. So
// another try at the same moment may find this one before it, and be refused
// although the lock is about to be free.
func (c *client) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	h, err := c.enqueue(ctx, key, a)
	if err != nil {
		return nil, fmt.Errorf("try %s: %w", key, err)
	}
	before, err := c.look(ctx, h)
	switch {
	case errors.Is(err, errGone):
		return nil, fmt.Errorf("try %s: %w", key, err)
	case err != nil:
		return nil, fmt.Errorf("try %s: %w: the place in the queue remains: %w", key, impls.ErrUnknown, err)
	case before == "":
		return h, nil
	}
	if err := c.remove(ctx, h.path, h.session); err != nil && !errors.Is(err, impls.ErrLost) {
		return nil, fmt.Errorf("try %s: %w: the place in the queue remains: %w", key, impls.ErrUnknown, err)
	}
	return nil, impls.ErrBusy
}

// enqueue creates the attempt's node.
func (c *client) enqueue(ctx context.Context, key string, a impls.Attempt) (*hold, error) {
	connecting, cancel := context.WithTimeout(ctx, c.driver.cfg.Timeout)
	s, err := c.driver.live(connecting)
	cancel()
	if err != nil {
		return nil, impls.NotSent(err)
	}
	path, err := do(ctx, c.driver, func(conn *zk.Conn) (string, error) {
		return conn.Create(parent(key)+"/"+a.String()+"-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, fmt.Errorf("the lock's node is missing, prepare the key first: %w", err)
	}
	if err != nil {
		return nil, err
	}
	n, ok := number(path[strings.LastIndexByte(path, '/')+1:])
	if !ok {
		return nil, fmt.Errorf("%w: the server named our node %s, whose number is beyond what it can count: use another key", impls.ErrUnknown, path)
	}
	return &hold{client: c, session: s, key: key, attempt: a, path: path, number: n}, nil
}

// nameLength is that of a node's name up to the number: an attempt and a dash.
const nameLength = 32 + 1

// number reads the number of a node of the queue; !ok if it is none of ours,
// or beyond 2^31-1, where the server's count turns negative.
func number(name string) (int32, bool) {
	if len(name) <= nameLength || name[nameLength-1] != '-' {
		return 0, false
	}
	n, err := strconv.ParseInt(name[nameLength:], 10, 32)
	return int32(n), err == nil && n >= 0
}

// Cleanup finds the attempt's node by its name and deletes it.
func (c *client) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	s := c.driver.current()
	// A server that lags behind must not hide the node from us.
	_, err := do(ctx, c.driver, func(conn *zk.Conn) (string, error) { return conn.Sync(parent(key)) })
	if err != nil {
		return fmt.Errorf("clean up %s: %w", key, err)
	}
	names, err := do(ctx, c.driver, func(conn *zk.Conn) ([]string, error) {
		names, _, err := conn.Children(parent(key))
		return names, err
	})
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("clean up %s: %w", key, err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, a.String()+"-") {
			continue
		}
		if err := c.remove(ctx, parent(key)+"/"+name, s); err != nil {
			return fmt.Errorf("clean up %s: %w", key, err)
		}
		return nil
	}
	return impls.ErrLost
}

// remove deletes a node of session s: nil, ErrLost if it was not there, or a
// doubt. It tries again after a lost connection until it knows, the session is
// lost, or ctx ends.
func (c *client) remove(ctx context.Context, path string, s *session) error {
	doubt := false // a deletion may have been carried out unseen
	for {
		_, err := do(ctx, c.driver, func(conn *zk.Conn) (struct{}, error) { return struct{}{}, conn.Delete(path, -1) })
		gone := errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrSessionExpired)
		stays := s != nil && s == c.driver.current() && !s.isLost()
		switch {
		case err == nil:
			return nil
		case gone && !doubt:
			return impls.ErrLost
		case gone && stays:
			return nil // who else should have deleted it
		case gone:
			return fmt.Errorf("%w: the node is gone, by our request or with the session", impls.ErrUnknown)
		}
		doubt = doubt || errors.Is(err, impls.ErrUnknown)
		if !stays || ctx.Err() != nil || !passing(err) || c.driver.cfg.Clock.Sleep(ctx, retryPause) != nil {
			if doubt && !errors.Is(err, impls.ErrUnknown) {
				return fmt.Errorf("%w: could not be repeated: %v", impls.ErrUnknown, err)
			}
			return err
		}
	}
}
