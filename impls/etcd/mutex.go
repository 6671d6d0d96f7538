package etcd

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/impls"
)

// mutex is etcd/mutex: a queue of keys in the order of their create revisions.
//
// Document: the lock of etcd's client library, written anew with a key per
// attempt instead of one per lease.
//
//	acquire  put a key named by the attempt, bound to the client's lease, and read in
//	         the same transaction which key precedes it; held if there is none;
//	         otherwise watch only that key until it is deleted, and look again: our own
//	         key may have expired with the lease, and the key before it may have left
//	         from the middle of the queue
//	release  delete the key
//
// Round trips: 1 to acquire, 1 to release, each a write to disk by a quorum; a
// waiter adds its watch and 2 reads.
// Bound: the session, a lease that the client renews three times per TTL.
// Takeover: the TTL, and up to a second until the server has revoked the lease; with a
// lock delay that much more, also behind a waiter that died.
// Guarantee: one holder at a time, in order of arrival, while its lease lives,
// and a fencing token, the key's create revision, which grows through
// failovers.
// Failure: a holder that was stopped or disconnected continues after its lease
// ended, and the resource does not check its token: Lost signals it, but cannot
// stop it. A restore from a backup resets revisions.
type mutex struct{ leased }

func (mutex) Info() impls.Info {
	return describe(impls.Info{
		ID:       "etcd/mutex",
		Summary:  "one lease per client; a key per attempt, ordered by create revision; each waiter watches the key before its own",
		Promise:  "one holder at a time, in order of arrival, while its lease lives; tokens grow with every grant",
		Document: "the lock of etcd's client library, written anew with one key per attempt",
		Fencing:  true, LockDelay: true,
		Steps: []impls.Step{impls.StepRenewing},
		Properties: []impls.Property{
			impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Available, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.Ordered, impls.ReportsLost, impls.CleansUp, impls.SignalsLoss, impls.Once,
		},
	})
}

func (mutex) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	return &mutexClient{client: c}, nil
}

type mutexClient struct {
	*client
	// last is the newest attempt and the session of its key.
	last struct {
		attempt impls.Attempt
		session *session
	}
}

// prefix is the prefix of the keys in a lock's queue.
func prefix(key string) string { return place("lock", key) + "/" }

// own is the key of one attempt.
func own(key string, a impls.Attempt) string { return prefix(key) + a.String() }

// begin records the session of a new attempt.
func (c *mutexClient) begin(ctx context.Context, a impls.Attempt) (*session, error) {
	s, err := c.live(ctx)
	if err != nil {
		return nil, err
	}
	c.last.attempt, c.last.session = a, s
	return s, nil
}

// held is the attempt's hold, or its place in the queue.
func (c *mutexClient) held(s *session, key string, a impls.Attempt, revision int64) *hold {
	// The key is named by the attempt, so this deletes no other client's key.
	return newHold(s, key, a, uint64(revision), func(ctx context.Context) error { return c.remove(ctx, own(key, a)) })
}

func (c *mutexClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	h, err := c.acquire(ctx, key, a)
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", key, err)
	}
	return h, nil
}

func (c *mutexClient) acquire(ctx context.Context, key string, a impls.Attempt) (*hold, error) {
	s, err := c.begin(ctx, a)
	if err != nil {
		return nil, err
	}
	resp, err := c.commit(ctx, s, []clientv3.Cmp{absent(void(a))}, []clientv3.Op{
		clientv3.OpPut(own(key, a), "", clientv3.WithLease(s.lease)),
		clientv3.OpGet(prefix(key), lastTwo()...),
	}, nil)
	if err != nil {
		return nil, err
	}
	if !resp.Succeeded {
		return nil, voided(a)
	}
	// The newest key is the one just written.
	queue := resp.Responses[1].GetResponseRange().Kvs
	h := c.held(s, key, a, queue[0].CreateRevision)
	if len(queue) > 1 {
		err = c.wait(ctx, h, string(queue[1].Key))
	}
	if err != nil {
		return nil, err
	}
	return h.granted(), nil
}

// lastTwo selects the newest key of a prefix and the one before it.
func lastTwo() []clientv3.OpOption {
	return []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(2),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend)}
}

// TryAcquire writes the key only if the queue is empty, so that a busy answer
// leaves nothing to clean up.
func (c *mutexClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	s, err := c.begin(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("try %s: %w", key, err)
	}
	revision, err := c.put(ctx, s, a, absent(prefix(key)).WithPrefix(), own(key, a))
	if err != nil {
		return nil, fmt.Errorf("try %s: %w", key, err)
	}
	return c.held(s, key, a, revision).granted(), nil
}

// Cleanup deletes the attempt's key, or prevents that it is ever written.
func (c *mutexClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	s, err := c.last.session, error(nil)
	last := s != nil && c.last.attempt == a
	if !last {
		s, err = c.live(ctx)
	}
	if err == nil {
		k := own(key, a)
		err = c.take(ctx, s, last, a, k, clientv3.Compare(clientv3.CreateRevision(k), ">", 0))
	}
	return impls.Settled("clean up", key, err)
}

// Left lists the keys in the lock's queue.
func (c *mutexClient) Left(ctx context.Context, key string) ([]impls.Entry, error) {
	r, cancel := request(ctx, c.cfg.Timeout)
	defer cancel()
	resp, err := c.api.Get(r, prefix(key), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", key, err)
	}
	var names []string
	for _, kv := range resp.Kvs {
		names = append(names, strings.TrimPrefix(string(kv.Key), prefix(key)))
	}
	return impls.ParseEntries("", names...), nil
}
