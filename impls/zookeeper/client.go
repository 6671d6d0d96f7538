package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
)

// ephemeral is the common part of this package's recipes: their nodes belong to a
// session.
type ephemeral struct{}

// CheckTTL accepts the TTLs that servers with default limits do not change.
func (ephemeral) CheckTTL(ttl time.Duration, lim impls.Limits) error {
	least, most := 2*lim.TickTime, 20*lim.TickTime
	if ttl < least || ttl > most || ttl%time.Millisecond != 0 {
		return fmt.Errorf("TTL %v: ZooKeeper serves whole milliseconds from %v to %v, 2 to 20 ticks of %v", ttl, least, most, lim.TickTime)
	}
	return nil
}

// describe adds to a recipe's description the facts of all recipes here.
func describe(i impls.Info) impls.Info {
	i.Backend = "zookeeper"
	i.Bound = impls.BoundSession
	i.Topologies = []string{"single", "quorum"}
	i.Requests = []string{"packets_received"}
	// A session expires at the next tick, which is half a TTL at most, and a leader
	// learns of renewals on other servers within half a tick.
	i.Takeover = func(ttl time.Duration) time.Duration { return ttl + ttl/2 + ttl/4 }
	// The driver drops a silent server after two thirds of a TTL, and has the rest
	// of the TTL to find another.
	i.DetectionTimeout = func(ttl, _ time.Duration) time.Duration { return ttl }
	return i
}

const root = "/lockbench"

// parent is a lock's own node. Each kind of lock has its own parent.
func parent(kind, key string) string { return root + "/" + kind + "-" + url.PathEscape(key) }

// openACL gives all permissions to all users.
func openACL() []zk.ACL { return zk.WorldACL(zk.PermAll) }

// preparing is the number of parents created in parallel.
const preparing = 32

// prepare creates the parents of locks of a kind. They are persistent.
func prepare(ctx context.Context, cfg impls.Config, kind string, keys []string) error {
	d, err := open(ctx, cfg, nil)
	if err != nil {
		return err
	}
	defer d.close(true)
	create := func(path string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := d.conn.Create(path, nil, 0, openACL())
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("create %s: %w", path, err)
		}
		return nil
	}
	// The driver's calls have no time limit, but end when the connection is closed.
	defer context.AfterFunc(ctx, func() { d.close(false) })()
	if err := create(root); err != nil {
		return err
	}
	errs := make([]error, min(preparing, len(keys)))
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			for k := i; k < len(keys) && errs[i] == nil; k += preparing {
				errs[i] = create(parent(kind, keys[k]))
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// client is one driver and its session.
type client struct{ driver *driver }

func connect(ctx context.Context, cfg impls.Config) (*client, error) {
	d, err := open(ctx, cfg, nil)
	if err != nil {
		return nil, err
	}
	return &client{driver: d}, nil
}

// Close ends the connection. The session and its nodes remain until the session
// expires.
func (c *client) Close() error {
	c.driver.close(false)
	return nil
}

// live waits, for at most one request timeout, for a session that is not lost.
// If it fails, nothing was sent.
func (c *client) live(ctx context.Context) (*session, error) {
	connecting, cancel := context.WithTimeout(ctx, c.driver.cfg.Timeout)
	defer cancel()
	s, err := c.driver.live(connecting)
	if err == nil {
		err = ctx.Err()
	}
	return s, impls.NotSent(err)
}

// create makes an ephemeral node and returns its path.
func (c *client) create(ctx context.Context, path string, flags int32) (string, error) {
	return do(ctx, c.driver, func(conn *zk.Conn) (string, error) {
		return conn.Create(path, nil, zk.FlagEphemeral|flags, openACL())
	})
}

// list lists the children of a node, after a sync: a server that lags behind must
// not hide one of our nodes. A missing node has no children.
func (c *client) list(ctx context.Context, dir string) ([]string, error) {
	_, err := do(ctx, c.driver, func(conn *zk.Conn) (string, error) { return conn.Sync(dir) })
	if err != nil {
		return nil, err
	}
	names, err := do(ctx, c.driver, func(conn *zk.Conn) ([]string, error) {
		names, _, err := conn.Children(dir)
		return names, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// remove deletes one of our nodes: nil, ErrLost if it did not exist, or another
// outcome.
func (c *client) remove(ctx context.Context, path string) error {
	_, err := do(ctx, c.driver, deletion(path))
	if isGone(err) {
		return impls.ErrLost
	}
	return err
}

func deletion(path string) func(*zk.Conn) (struct{}, error) {
	return func(conn *zk.Conn) (struct{}, error) { return struct{}{}, conn.Delete(path, -1) }
}

// isGone reports whether err means that the node to delete does not exist: it never
// did, or it vanished with the session.
func isGone(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrSessionExpired)
}

// removeSurely deletes a node of session s that no other client deletes: nil,
// ErrLost if it did not exist, or unknown. It retries after a lost connection
// until the answer is definite, the session is lost, or ctx ends.
func (c *client) removeSurely(ctx context.Context, s *session, remove func(*zk.Conn) (struct{}, error)) error {
	return c.repeat(ctx, s, remove, false)
}

// repeat is removeSurely; with beyond it continues after the loss of the
// session, and may then delete another client's node.
func (c *client) repeat(ctx context.Context, s *session, remove func(*zk.Conn) (struct{}, error), beyond bool) error {
	doubt := false // an earlier deletion may have been executed
	for {
		_, err := do(ctx, c.driver, remove)
		stays := s != nil && s == c.driver.current() && !s.isLost()
		switch {
		case err == nil:
			return nil
		case isGone(err) && !doubt:
			return impls.ErrLost
		case isGone(err) && stays:
			return nil // only our earlier request can have deleted it
		case isGone(err):
			return fmt.Errorf("%w: the node is gone, by our request or with the session", impls.ErrUnknown)
		}
		doubt = doubt || errors.Is(err, impls.ErrUnknown)
		if !(stays || beyond) || ctx.Err() != nil || !passing(err) || c.driver.cfg.Clock.Sleep(ctx, retryPause) != nil {
			if doubt && !errors.Is(err, impls.ErrUnknown) {
				return fmt.Errorf("%w: the request could not be repeated: %v", impls.ErrUnknown, err)
			}
			return err
		}
	}
}

// retryPause is the time to back off after a lost connection.
const retryPause = 50 * time.Millisecond

// passing reports whether a failed read is worth repeating.
func passing(err error) bool {
	return errors.Is(err, impls.ErrUnknown) || errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrSessionMoved) ||
		errors.Is(err, context.DeadlineExceeded)
}

// await waits for the event of a watch: nil if it came, or the watch ended. It
// returns ctx's error when ctx ends, and errEnded when alive is closed; alive
// may be nil.
func (c *client) await(ctx context.Context, alive <-chan struct{}, events <-chan zk.Event) error {
	c.driver.cfg.Reach(ctx, impls.StepWaiting)
	select {
	case e := <-events:
		if e.Err == nil {
			c.driver.cfg.Reach(ctx, impls.StepWoken)
		}
		return nil
	case <-alive:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errEnded: the session that the waiter depends on has ended.
var errEnded = fmt.Errorf("%w: the session ended", impls.ErrUnknown)

// hold is a lock held by a node of a session, which the driver renews.
type hold struct {
	impls.Grant
	session *session
}

// newHold is a hold that free releases.
func newHold(s *session, key string, a impls.Attempt, fence uint64, free func(context.Context) error) hold {
	release := func(ctx context.Context) error {
		s.holds.Drop(a)
		return impls.Settled("release", key, free(ctx))
	}
	return hold{Grant: impls.NewGrant(key, a, fence, release), session: s}
}

// granted marks the hold as held, not only waiting.
func (h *hold) granted() { h.session.holds.Add(h.Key(), h.Attempt()) }

func (h *hold) LeaseEnd() time.Time { return h.session.leaseEnd() }

// Lost is closed when a server reported that the session expired, or when the
// client was disconnected until the session's end, counted from before the
// newest answered packet was sent.
func (h *hold) Lost() <-chan struct{} { return h.session.alive.Done() }
