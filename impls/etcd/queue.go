package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/impls"
)

// wait stands in the queue until nobody is before h. When it last looked, that
// was the key before.
//
// An error in between (no leader, a server that restarts) does not end the
// wait, for the place in the queue lives on: the caller's ctx does, or the
// loss of the session. After both, the place may still be there.
func (c *client) wait(ctx context.Context, h *hold, before string) error {
	for {
		if err := c.watch(ctx, h, before); err != nil {
			return err
		}
		r, cancel := request(ctx, c.cfg.Timeout)
		resp, err := c.api.Get(r, prefix(h.key), append(lastTwo(), clientv3.WithMaxCreateRev(int64(h.fence)))...)
		cancel()
		if err != nil {
			if err := c.cfg.Clock.Sleep(ctx, retryPause); err != nil {
				return abandoned(err)
			}
			continue
		}
		switch {
		case len(resp.Kvs) == 0 || string(resp.Kvs[0].Key) != own(h.key, h.attempt):
			return fmt.Errorf("%w: the lease ended while we waited, and our place in the queue with it", impls.ErrFailed)
		case len(resp.Kvs) == 1:
			return nil
		}
		before = string(resp.Kvs[1].Key)
	}
}

// retryPause is how long to leave servers in peace that just answered by an
// error.
const retryPause = 50 * time.Millisecond

// watch returns nil when the key before was deleted, and also when the watch
// broke: the caller looks again in any case.
//
// The watch begins at the present, and the key is looked up once it stands. To
// begin it at the revision of the last look would save that request, but a
// server takes a watch that begins in the past for one that lags, and serves
// those only every 100 ms: on a busy lock, where revisions pass quickly, each
// hand-over would wait for that.
func (c *client) watch(ctx context.Context, h *hold, before string) error {
	// RequireLeader: a member cut off from the others would else say nothing
	// at all.
	watching, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	defer context.AfterFunc(h.session.alive, cancel)()
	events := c.api.Watch(watching, before, clientv3.WithCreatedNotify(), clientv3.WithFilterPut())
	for resp := range events {
		if resp.Err() != nil {
			break
		}
		// Puts are filtered out, so that any event is the deletion.
		if len(resp.Events) > 0 {
			return nil
		}
		if resp.Created {
			there, err := c.exists(watching, before)
			if err != nil {
				break
			}
			if !there {
				return nil
			}
		}
	}
	switch {
	case ctx.Err() != nil:
		return abandoned(ctx.Err())
	case h.session.isLost():
		return fmt.Errorf("%w: the session ended while we waited", impls.ErrUnknown)
	}
	if err := c.cfg.Clock.Sleep(ctx, retryPause); err != nil {
		return abandoned(err)
	}
	return nil
}

// exists reports whether the key is there.
func (c *client) exists(ctx context.Context, key string) (bool, error) {
	ctx, cancel := request(ctx, c.cfg.Timeout)
	defer cancel()
	resp, err := c.api.Get(ctx, key, clientv3.WithCountOnly())
	if err != nil {
		return false, err
	}
	return resp.Count > 0, nil
}

// abandoned is the outcome of a wait that the caller ended: the place in the
// queue is still there, and may reach the front at any time.
func abandoned(err error) error {
	return fmt.Errorf("%w: gave up waiting, the place in the queue remains: %w", impls.ErrUnknown, err)
}
