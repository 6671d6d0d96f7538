package zookeeper

import (
	"context"

	"github.com/lockbench/lockbench/impls"
)

// watchChildren is zookeeper/watch-children: a queue that every waiter watches
// as a whole.
//
// Document: a collection of articles on three ways to build a lock: its basic
// logic of a lock in ZooKeeper, without the watch on the previous node that
// other articles add.
//
//	acquire  create an ephemeral, numbered node guid-lock- below the lock's own; list
//	         the nodes and watch the list; held if none is lower; otherwise wait until
//	         the list changes, and list again
//	release  delete the node
//
// The guid is the attempt. Round trips: 2 to acquire, 1 to release; the first
// and the last are quorum writes; every waiter lists the whole queue again at
// each change.
// Bound: the session, which the driver renews. Takeover: the TTL and up to
// three quarters of it, since sessions expire at whole ticks.
// Guarantee: one holder at a time, in order of arrival, while its session
// lives. No tokens.
// Failure: with N waiters each release, arrival and departure sends N events,
// and N lists of N names are read to find one holder.
type watchChildren struct{ ephemeral }

func (watchChildren) Info() impls.Info {
	return describe(impls.Info{
		ID:         "zookeeper/watch-children",
		Summary:    "an ephemeral sequential node per attempt; all waiters watch the list of nodes, and read it at each change",
		Promise:    "one holder at a time, in order of arrival, while its session lives",
		Document:   "a collection of articles on three ways to build a lock: the basic logic of a lock in ZooKeeper",
		Fails:      "each change of the queue wakes every waiter, and each of them reads the whole queue",
		RoundTrips: 3,
		Properties: []impls.Property{
			impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Available, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.Ordered, impls.ReportsLost, impls.CleansUp, impls.SignalsLoss, impls.Once,
		},
		Steps: []impls.Step{stepQueued, stepLeave},
	})
}

func (watchChildren) queue() queue { return queue{kind: "all", mark: "lock", watchAll: true} }

func (r watchChildren) Prepare(ctx context.Context, cfg impls.Config, keys []string) error {
	return prepare(ctx, cfg, r.queue().kind, keys)
}

func (r watchChildren) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := r.queue().open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return c, nil
}
