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

// ephemeral is what the recipes of this package have in common: their nodes
// hang on a session.
type ephemeral struct{}

// CheckTTL takes what servers with default limits make a session of unchanged.
func (ephemeral) CheckTTL(ttl time.Duration, lim impls.Limits) error {
	least, most := 2*lim.TickTime, 20*lim.TickTime
	if ttl < least || ttl > most || ttl%time.Millisecond != 0 {
		return fmt.Errorf("TTL %v: ZooKeeper serves whole milliseconds from %v to %v, 2 to 20 ticks of %v", ttl, least, most, lim.TickTime)
	}
	return nil
}

// describe adds to a recipe's description what holds for all of them.
func describe(i impls.Info) impls.Info {
	i.Backend = "zookeeper"
	i.Bound = impls.BoundSession
	i.Topologies = []string{"single", "quorum"}
	i.Requests = []string{"packets_received"}
	// Sessions expire at the next tick, which is half a TTL at most, and a
	// leader hears of a session from the other servers within half a tick.
	i.Takeover = func(ttl time.Duration) time.Duration { return ttl + ttl/2 + ttl/4 }
	// The driver gives a server up after two thirds of a TTL, and has the rest of
	// it to find another.
	i.DetectionTimeout = func(ttl, _ time.Duration) time.Duration { return ttl }
	return i
}

const root = "/lockbench"

// parent is a lock's own node. Each kind of lock has its own.
func parent(kind, key string) string { return root + "/" + kind + "-" + url.PathEscape(key) }

// anybody may do anything with our nodes.
func anybody() []zk.ACL { return zk.WorldACL(zk.PermAll) }

// preparing is how many parents are created at once.
const preparing = 32

// prepare creates the own nodes of locks of a kind. They are persistent and
// stay.
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
		_, err := d.conn.Create(path, nil, 0, anybody())
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

// Close ends the connection. The session, and whatever nodes hang on it, live
// on until their time is over.
func (c *client) Close() error {
	c.driver.close(false)
	return nil
}

// live waits, no longer than for a request, for a session that is not known to
// be lost. If there is none, nothing was sent.
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
		return conn.Create(path, nil, zk.FlagEphemeral|flags, anybody())
	})
}

// list lists what stands below a node, no older than what was answered before:
// a server that lags behind must not hide a node of ours. A node that is not
// there has nothing below it.
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

// remove deletes a node of ours: nil, ErrLost if it was not there, or another
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

// isGone tells whether err says that what was to be deleted is not there: never
// was, or vanished with the session.
func isGone(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrSessionExpired)
}

// removeSurely deletes a node that nobody else would delete, and that hangs on
// session s: nil, ErrLost if it was not there, or a doubt. It tries again after a
// lost connection until it knows, the session is lost, or ctx ends.
func (c *client) removeSurely(ctx context.Context, s *session, remove func(*zk.Conn) (struct{}, error)) error {
	return c.repeat(ctx, s, remove, false)
}

// repeat is removeSurely, which beyond makes go on when the session is lost: then
// what it removes may be another's.
func (c *client) repeat(ctx context.Context, s *session, remove func(*zk.Conn) (struct{}, error), beyond bool) error {
	doubt := false // a deletion may have been carried out unseen
	for {
		_, err := do(ctx, c.driver, remove)
		stays := s != nil && s == c.driver.current() && !s.isLost()
		switch {
		case err == nil:
			return nil
		case isGone(err) && !doubt:
			return impls.ErrLost
		case isGone(err) && stays:
			return nil // who else should have deleted it
		case isGone(err):
			return fmt.Errorf("%w: the node is gone, by our request or with the session", impls.ErrUnknown)
		}
		doubt = doubt || errors.Is(err, impls.ErrUnknown)
		if !(stays || beyond) || ctx.Err() != nil || !passing(err) || c.driver.cfg.Clock.Sleep(ctx, retryPause) != nil {
			if doubt && !errors.Is(err, impls.ErrUnknown) {
				return fmt.Errorf("%w: could not be repeated: %v", impls.ErrUnknown, err)
			}
			return err
		}
	}
}

// retryPause is how long to leave servers in peace after a lost connection.
const retryPause = 50 * time.Millisecond

// passing tells whether a read that failed is worth repeating.
func passing(err error) bool {
	return errors.Is(err, impls.ErrUnknown) || errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrSessionMoved) ||
		errors.Is(err, context.DeadlineExceeded)
}

// await waits for the event of a watch: nil if it came, or the watch ended. It
// returns ctx's error when that ends, and errEnded when alive does, which may be
// nil.
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

// errEnded: what the waiter depends on has ended.
var errEnded = fmt.Errorf("%w: the session ended", impls.ErrUnknown)

// hold is a lock held by a node that hangs on a session, which the driver keeps
// alive.
type hold struct {
	impls.Grant
	session *session
}

// newHold is a hold whose release free sends, and names its outcome.
func newHold(s *session, key string, a impls.Attempt, fence uint64, free func(context.Context) error) hold {
	release := func(ctx context.Context) error {
		s.kept.Drop(a)
		return impls.Settled("release", key, free(ctx))
	}
	return hold{Grant: impls.NewGrant(key, a, fence, release), session: s}
}

// granted notes that the lock is held now, and not only waited for.
func (h *hold) granted() { h.session.kept.Add(h.Key(), h.Attempt()) }

func (h *hold) LeaseEnd() time.Time { return h.session.leaseEnd() }

// Lost is closed when a server said that the session has expired, or when the
// client was cut off and the session's end, counted from before the newest
// answered packet was sent, passed before it came back.
func (h *hold) Lost() <-chan struct{} { return h.session.alive.Done() }
