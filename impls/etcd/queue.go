package etcd

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/impls"
)

// wait waits in the queue until no key precedes h's; before is the key that
// preceded it at the last look.
//
// An error (no leader, a restarting server) does not end the wait, since the
// place in the queue remains: only the end of ctx or the loss of the session
// does. After both, the place may remain.
func (c *mutexClient) wait(ctx context.Context, h *hold, before string) error {
	for {
		if err := c.watch(ctx, h.session.alive, before); err != nil {
			return abandoned(err)
		}
		resp, err := c.look(ctx, h)
		if err != nil {
			return abandoned(err)
		}
		switch {
		case len(resp.Kvs) == 0 || string(resp.Kvs[0].Key) != own(h.Key(), h.Attempt()):
			return fmt.Errorf("%w: the lease and its key ended during the wait", impls.ErrFailed)
		case len(resp.Kvs) == 1:
			return nil
		}
		before = string(resp.Kvs[1].Key)
	}
}

// look reads the attempt's key and the one before it, and repeats until a
// server answers: the next request goes to another server.
func (c *mutexClient) look(ctx context.Context, h *hold) (*clientv3.GetResponse, error) {
	for {
		r, cancel := request(ctx, c.cfg.Timeout)
		resp, err := c.api.Get(r, prefix(h.Key()), append(lastTwo(), clientv3.WithMaxCreateRev(int64(h.Fence())))...)
		cancel()
		if err == nil {
			return resp, nil
		}
		if h.session.alive.Err() != nil {
			return nil, errEnded
		}
		if err := c.cfg.Clock.Sleep(ctx, retryPause); err != nil {
			return nil, err
		}
	}
}

// abandoned is the outcome of a wait that ended early: the place in the queue
// may remain, and become the first at any time.
func abandoned(err error) error {
	if errors.Is(err, errEnded) {
		return fmt.Errorf("%w: %w", impls.ErrUnknown, err)
	}
	return fmt.Errorf("%w: gave up waiting, the key in the queue remains: %w", impls.ErrUnknown, err)
}
