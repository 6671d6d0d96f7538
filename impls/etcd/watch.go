package etcd

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/impls"
)

// retryPause is how long to leave servers in peace that just answered by an
// error.
const retryPause = 50 * time.Millisecond

// errEnded: what the waiter depends on has ended.
var errEnded = errors.New("the session ended while we waited")

// watch returns nil when key was deleted, and also when the watch broke: the
// caller looks again in any case. It returns ctx's error when that ends, and
// errEnded when alive does.
//
// The watch begins at the present, and the key is looked up once it stands. To
// begin it at the revision of the last look would save that request, but a
// server takes a watch that begins in the past for one that lags, and serves
// those only every 100 ms: on a busy lock, where revisions pass quickly, each
// hand-over would wait for that.
//
// It is given up after a TTL, and the caller looks again: a member that stands
// still keeps its connections, so that whoever watches there hears nothing, and
// the next watch goes to another.
func (c *client) watch(ctx, alive context.Context, key string) error {
	// RequireLeader: a member cut off from the others would else say nothing
	// at all.
	watching, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), c.cfg.TTL)
	defer cancel()
	defer context.AfterFunc(alive, cancel)()
	events := c.api.Watch(watching, key, clientv3.WithCreatedNotify(), clientv3.WithFilterPut())
	for resp := range events {
		if resp.Err() != nil {
			break
		}
		// Puts are filtered out, so that any event is the deletion.
		if len(resp.Events) > 0 {
			c.cfg.Reach(ctx, impls.StepWoken)
			return nil
		}
		if resp.Created {
			there, err := c.exists(watching, key)
			if err != nil {
				break
			}
			if !there {
				return nil
			}
			c.cfg.Reach(ctx, impls.StepWaiting)
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case alive.Err() != nil:
		return errEnded
	case watching.Err() != nil:
		return nil // nothing was heard for long
	}
	return c.cfg.Clock.Sleep(ctx, retryPause)
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
