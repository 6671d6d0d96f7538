package zookeeper

import (
	"context"

	"github.com/lockbench/lockbench/impls"
)

// readWrite is zookeeper/read-write: one queue for readers and writers.
//
// Document: ZooKeeper's recipe for shared locks, with protected creation.
//
//	acquire to write  create an ephemeral, numbered node write- below the lock's own;
//	                  list the nodes; held if none is lower; otherwise watch the node
//	                  before it, and list again when that is gone
//	acquire to read   the same with a node read-; held if no writer is lower; otherwise
//	                  watch the last writer before it
//	release           delete the node
//
// The attempt precedes read- and write-, so that a client finds its node if the
// answer to the creation was lost.
//
// Round trips: 2 to acquire, 1 to release; the first and the last are quorum
// writes; a waiter adds its watch and a list. A writer's release wakes the next
// writer, or all readers before it.
// Bound: the session, which the driver renews. Takeover: the TTL and up to
// three quarters of it, since sessions expire at whole ticks.
// Guarantee: a writer excludes all other clients, readers share, in order of
// arrival, so that neither starves the other, while their sessions live. A
// writer's token, its number plus one, is greater than that of every earlier
// writer, as for zookeeper/sequence. Readers have none: readers that share the
// lock may be granted it in any order, and a resource that saw one's token
// would reject the other.
// Failure: as zookeeper/sequence; and a resource cannot reject what a reader
// reads after its session expired.
type readWrite struct{ ephemeral }

func (readWrite) Info() impls.Info {
	return describe(impls.Info{
		ID:         "zookeeper/read-write",
		Summary:    "an ephemeral sequential node per attempt; a writer watches the node before its own, a reader the last writer before it",
		Promise:    "a writer alone or readers together, in order of arrival, while their sessions live; writers' tokens grow while the lock's node is not deleted",
		Document:   "ZooKeeper's recipe for shared locks, with protected creation",
		Fencing:    true,
		RoundTrips: 3,
		Properties: []impls.Property{
			impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Available, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.Ordered, impls.ReadWrite, impls.ReportsLost, impls.CleansUp, impls.SignalsLoss, impls.Once,
		},
		Steps: []impls.Step{stepQueued, stepLeave},
	})
}

// The marks of a reader's and a writer's nodes.
const (
	markRead  = "read"
	markWrite = "write"
)

func (readWrite) queue() queue {
	return queue{kind: "shared", mark: markWrite, fenced: true,
		blocks: func(own, other string) bool { return own == markWrite || other == markWrite }}
}

func (r readWrite) Prepare(ctx context.Context, cfg impls.Config, keys []string) error {
	return prepare(ctx, cfg, r.queue().kind, keys)
}

func (r readWrite) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := r.queue().open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &sharedClient{c}, nil
}

// sharedClient is an impls.ReadWriter.
type sharedClient struct{ *queueClient }

func (c *sharedClient) AcquireRead(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return c.acquire(ctx, key, markRead, a)
}

func (c *sharedClient) TryAcquireRead(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return c.try(ctx, key, markRead, a)
}
