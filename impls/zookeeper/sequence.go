package zookeeper

import (
	"context"

	"github.com/lockbench/lockbench/impls"
)

// sequence is zookeeper/sequence: a queue of ephemeral nodes that the server
// numbers.
//
// Document: ZooKeeper's recipe for locks, with protected creation.
//
//	acquire  create an ephemeral, numbered node below the lock's own, named by the
//	         attempt; list the nodes; held if none is lower; otherwise watch only the
//	         node before it, and list again when that is gone
//	release  delete the node
//
// With the attempt in the name a client finds its node if the answer to the
// creation was lost. Nodes are compared by number only, and a listing without
// the client's own node grants nothing.
//
// Round trips: 2 to acquire, 1 to release; the first and the last are quorum
// writes; a waiter adds its watch and a list.
// Bound: the session, which the driver renews. Takeover: the TTL and up to
// three quarters of it, since sessions expire at whole ticks, and a TTL may
// have only two.
// Guarantee: one holder at a time, in order of arrival, while its session
// lives, and a fencing token, the number plus one, while the lock's own node
// exists: its deletion, which no recipe here does, restarts the numbers, and
// after 2^31 nodes they overflow, which is an error.
// Failure: a holder that was stopped or disconnected continues after its
// session expired, and the resource does not check its token: Lost signals it,
// but cannot stop it.
type sequence struct{ ephemeral }

func (sequence) Info() impls.Info {
	return describe(impls.Info{
		ID:         "zookeeper/sequence",
		Summary:    "an ephemeral sequential node per attempt; each waiter watches the node before its own",
		Promise:    "one holder at a time, in order of arrival, while its session lives; tokens grow with every grant while the lock's node is not deleted",
		Document:   "ZooKeeper's recipe for locks, with protected creation",
		Fencing:    true,
		RoundTrips: 3,
		Properties: []impls.Property{
			impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Available, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.Ordered, impls.ReportsLost, impls.CleansUp, impls.SignalsLoss, impls.Once,
		},
		Steps: []impls.Step{stepQueued, stepLeave},
	})
}

func (sequence) queue() queue { return queue{kind: "lock", fenced: true} }

func (r sequence) Prepare(ctx context.Context, cfg impls.Config, keys []string) error {
	return prepare(ctx, cfg, r.queue().kind, keys)
}

func (r sequence) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := r.queue().open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return c, nil
}
