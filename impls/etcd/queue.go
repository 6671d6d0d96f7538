package etcd

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/impls"
)

// wait stands in the queue until nobody is before h. When it last looked, that
// was the key before.
//
// An error in between (no leader, a server that restarts) does not end the
// wait, for the place in the queue lives on: the caller's ctx does, or the
// loss of the session. After both, the place may still be there.
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
			return fmt.Errorf("%w: the lease ended while we waited, and our place in the queue with it", impls.ErrFailed)
		case len(resp.Kvs) == 1:
			return nil
		}
		before = string(resp.Kvs[1].Key)
	}
}

// look reads the attempt's key and the one before it, again and again until a
// server answers: the next request goes to another.
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
// may still be there, and reach the front at any time.
func abandoned(err error) error {
	if errors.Is(err, errEnded) {
		return fmt.Errorf("%w: %w", impls.ErrUnknown, err)
	}
	return fmt.Errorf("%w: gave up waiting, the place in the queue remains: %w", impls.ErrUnknown, err)
}
