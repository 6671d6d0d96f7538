package etcd

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/impls"
)

// retryPause is the time to back off after a server returned an error.
const retryPause = 50 * time.Millisecond

// errEnded: the session that the waiter depends on has ended.
var errEnded = errors.New("the session ended while we waited")

// watch returns nil when key was deleted, and also when the watch broke, since
// the caller looks again. It returns ctx's error when ctx ends, and errEnded
// when alive ends.
//
// The watch begins at the present, and the key is read after it was created.
// Beginning at the revision of the last look would save that read, but a server
// serves watches that begin in the past only every 100 ms: on a busy lock,
// where revisions grow quickly, each hand-over would wait for that.
//
// It ends after a TTL, and the caller looks again: a stopped member keeps its
// connections but sends nothing, and the next watch goes to another member.
func (c *client) watch(ctx, alive context.Context, key string) error {
	// RequireLeader: otherwise a partitioned member sends nothing.
	watching, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), c.cfg.TTL)
	defer cancel()
	defer context.AfterFunc(alive, cancel)()
	events := c.api.Watch(watching, key, clientv3.WithCreatedNotify(), clientv3.WithFilterPut())
	for resp := range events {
		if resp.Err() != nil {
			break
		}
		// Puts are filtered out, so any event is the deletion.
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
		return nil // no event for a TTL
	}
	return c.cfg.Clock.Sleep(ctx, retryPause)
}

// exists reports whether the key exists.
func (c *client) exists(ctx context.Context, key string) (bool, error) {
	ctx, cancel := request(ctx, c.cfg.Timeout)
	defer cancel()
	resp, err := c.api.Get(ctx, key, clientv3.WithCountOnly())
	if err != nil {
		return false, err
	}
	return resp.Count > 0, nil
}
