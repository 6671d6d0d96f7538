package zookeeper

import (
	"context"

	"github.com/lockbench/lockbench/impls"
)

// sequence is zookeeper/sequence: a queue of ephemeral nodes that the server
// numbers.
//
//	acquire  create a node below the lock's own, ephemeral, named by the attempt
//	         and numbered by the server; list the nodes; the lowest number: ours.
//	         Otherwise watch the node before ours, that one alone, and list again
//	         when it is gone
//	release  delete the node
//
// The attempt in the name lets a client find its node if the answer to the
// creation was lost. Nodes are compared by number only, and a client believes
// no listing in which its own node is missing.
//
// Round trips: 2 to acquire, 1 to release, the first and the last a write of a
// quorum; a waiter adds its watch and a list.
// Bound: the session, which the driver keeps alive. Takeover: the TTL, and up to
// three quarters of it, for sessions expire by whole ticks, of which a TTL may
// have as few as two.
//
// It promises one holder at a time, in order of arrival, while its session
// lives, and a fencing token, the number plus one, as long as the lock's own
// node lives: deleting that begins the numbers anew, which nothing here does,
// and after 2^31 nodes they overflow, which is an error. It fails when a holder
// that was stopped or cut off goes on although its session expired, and nothing
// checks its token: Lost tells it, but cannot stop it.
//
// Source: ZooKeeper's recipe for locks, with protected creation.
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
