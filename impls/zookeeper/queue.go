package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
)

// errGone: our place in the queue is no longer there.
var errGone = fmt.Errorf("%w: our place in the queue is gone", impls.ErrFailed)

// retryPause is how long to leave servers in peace after a lost connection.
const retryPause = 50 * time.Millisecond

// passing tells whether a read that failed is worth repeating.
func passing(err error) bool {
	return errors.Is(err, impls.ErrUnknown) || errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrSessionMoved) ||
		errors.Is(err, context.DeadlineExceeded)
}

// wait stands in the queue until nobody is before h.
//
// A lost connection does not end the wait, for the place in the queue lives
// on: the caller's ctx does, or the loss of the session. After both, the place
// may still be there.
func (c *client) wait(ctx context.Context, h *hold) error {
	for {
		before, err := c.look(ctx, h)
		if err == nil && before == "" {
			return nil
		}
		if err == nil {
			err = c.watch(ctx, h, before)
		}
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode):
			continue // the node before is gone, or its watch was: look again
		case errors.Is(err, errGone):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%w: gave up waiting, the place in the queue remains: %w", impls.ErrUnknown, ctx.Err())
		case h.session.isLost() || !passing(err):
			return fmt.Errorf("%w: stopped waiting, the place in the queue may remain: %w", impls.ErrUnknown, err)
		}
		_ = c.driver.cfg.Clock.Sleep(ctx, retryPause) // ctx is looked at after the next request
	}
}

// look lists the queue and returns the path of the node before h's, "" if h is
// the first.
func (c *client) look(ctx context.Context, h *hold) (before string, err error) {
	dir := parent(h.key)
	names, err := do(ctx, c.driver, func(conn *zk.Conn) ([]string, error) {
		names, _, err := conn.Children(dir)
		return names, err
	})
	if err != nil {
		return "", err
	}
	// A node of an older session may still be in a listing, since the server
	// that the new one is with may lag behind.
	if h.session != c.driver.current() || h.session.isLost() {
		h.session.lose()
		return "", fmt.Errorf("%w: the session ended", impls.ErrUnknown)
	}
	present, best := false, int32(-1)
	for _, name := range names {
		n, ok := number(name)
		switch {
		case !ok:
			continue
		case n == h.number:
			present = dir+"/"+name == h.path
		case n < h.number && n > best:
			best, before = n, dir+"/"+name
		}
	}
	if !present {
		return "", errGone
	}
	return before, nil
}

// watch returns nil when something happened to the node before, or the watch
// ended, and ErrNoNode if the node is not there.
func (c *client) watch(ctx context.Context, h *hold, before string) error {
	events, err := do(ctx, c.driver, func(conn *zk.Conn) (<-chan zk.Event, error) {
		_, _, events, err := conn.GetW(before)
		return events, err
	})
	if err != nil {
		return err
	}
	select {
	case <-events:
		return nil
	case <-h.session.alive.Done():
		return fmt.Errorf("%w: the session ended", impls.ErrUnknown)
	case <-ctx.Done():
		return ctx.Err()
	}
}

type hold struct {
	client  *client
	session *session
	key     string
	attempt impls.Attempt
	path    string
	number  int32
	over    bool // a release has said so, definitely
}

func (h *hold) Key() string            { return h.key }
func (h *hold) Attempt() impls.Attempt { return h.attempt }
func (h *hold) Fence() uint64          { return uint64(h.number) + 1 }
func (h *hold) LeaseEnd() time.Time    { return h.session.leaseEnd() }

// Lost is closed when a server said that the session has expired, or when the
// client was cut off and the session's end, counted from before the newest
// answered packet was sent, passed before it came back.
func (h *hold) Lost() <-chan struct{} { return h.session.alive.Done() }

// Extend is not supported: the driver keeps the session alive.
func (h *hold) Extend(context.Context) error {
	return fmt.Errorf("extend %s: the driver keeps the session alive: %w", h.key, errors.ErrUnsupported)
}

// Release deletes the node. It repeats the request after a lost connection
// until the answer is certain, the session is lost or ctx ends.
func (h *hold) Release(ctx context.Context) error {
	if h.over {
		return impls.ErrLost
	}
	err := h.client.remove(ctx, h.path, h.session)
	if h.over = impls.Definite(err); h.over {
		return err
	}
	return fmt.Errorf("release %s: %w", h.key, err)
}
