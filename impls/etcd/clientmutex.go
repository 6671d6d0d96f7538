package etcd

import (
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3/concurrency"
	"google.golang.org/grpc"

	"github.com/lockbench/lockbench/impls"
)

// clientMutex is etcd/client-mutex: the client library's Mutex and Session, one
// session per client and one Mutex per attempt.
//
// Document: etcd's client library, package concurrency.
//
//	acquire  Lock: put a key named by the session's lease, unless it exists, and read
//	         in the same transaction which key is first; held if it is our own;
//	         otherwise wait until all older keys are gone, each time for the newest of
//	         them, and check that our own still exists
//	try      TryLock: the same, and delete the key if it is not the first
//	release  Unlock: delete the key
//
// Round trips: 1 to acquire, 1 to release, each a write to disk by a quorum; a
// waiter adds its watch and 3 reads, a busy try a deletion.
// Bound: the session, a lease that the library renews three times per TTL, by
// its own clock. Takeover: the TTL, and up to a second until the server has
// revoked the lease.
// Guarantee: one holder at a time, in order of arrival, while its lease lives,
// and a fencing token: the revision at which the library found itself the
// holder.
// Failure: where the library differs from etcd/mutex:
//
//   - The key belongs to the session and not to the attempt: a second Mutex of
//     the session holds as soon as the first does. This client therefore
//     records what it holds, and does not ask the library for it again.
//   - Unlock does not report whether the key still existed: the release of a
//     lost lock succeeds.
//   - A Lock that fails in its first request leaves its key behind, if that was
//     written, and Unlock does not delete it. Cleanup does; and if there is no
//     key, so that it might still come, Cleanup revokes the lease, which ends
//     all holds of this client.
//   - A wait whose ctx ended deletes its key without a time limit: it lasts
//     until a server answers, or the driver has dropped the connection.
//   - The watch begins at the revision of the last read, and a server serves
//     watches that begin in the past only every 100 ms. It does not require a
//     leader either, so that a partitioned member keeps it waiting.
type clientMutex struct{ leased }

func (clientMutex) Info() impls.Info {
	return describe(impls.Info{
		ID:       "etcd/client-mutex",
		Summary:  "the client library's Mutex and Session: a key per session, ordered by create revision; each waiter watches the key before its own",
		Promise:  "one holder at a time, in order of arrival, while its lease lives; tokens grow with every grant",
		Document: "etcd's client library, package concurrency",
		Fails:    "two locks of one session both hold; the release of a lost lock succeeds; a first request of unknown outcome costs the session",
		Fencing:  true,
		Properties: []impls.Property{
			impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Available, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.Ordered, impls.CleansUp, impls.SignalsLoss, impls.Once,
		},
	})
}

func (clientMutex) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	renewals := &renewalObserver{cfg: cfg}
	base, err := connect(cfg, grpc.WithChainStreamInterceptor(renewals.intercept))
	if err != nil {
		return nil, err
	}
	c := &libraryClient{client: base, claims: impls.Claims[claim]{}}
	c.renew = func(s *session) (func(), error) {
		renewals.follow(s)
		lib, err := concurrency.NewSession(c.api, concurrency.WithLease(s.lease), concurrency.WithContext(c.background))
		if err != nil {
			return nil, err
		}
		c.lib = lib
		return func() {
			<-lib.Done()
			if c.background.Err() == nil {
				s.lose() // the client was not closed
			}
		}, nil
	}
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

type libraryClient struct {
	*client
	lib    *concurrency.Session // of the newest session
	claims impls.Claims[claim]
}

// claim is the client's record of an attempt that may have a key on the servers.
type claim struct {
	key     string
	session *session
	held    bool // the library granted it
}

// libraryPrefix is the prefix of a lock for the library, which adds a slash.
func libraryPrefix(key string) string { return place("client", key) }

// lockKey is the library's name of a session's key.
func lockKey(key string, s *session) string { return fmt.Sprintf("%s/%x", libraryPrefix(key), s.lease) }

func (c *libraryClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	for s := c.holding(key); s != nil; s = c.holding(key) {
		c.cfg.Reach(ctx, impls.StepWaiting)
		select {
		case <-s.alive.Done():
		case <-ctx.Done():
			return nil, fmt.Errorf("acquire %s: this client holds the lock itself: %w: %w", key, impls.ErrFailed, ctx.Err())
		}
	}
	// The library uses one context for the whole wait, so a request has no time
	// limit of its own.
	h, err := c.lock(&requestContext{Context: ctx}, key, a, (*concurrency.Mutex).Lock)
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", key, err)
	}
	return h, nil
}

func (c *libraryClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	if c.holding(key) != nil {
		return nil, fmt.Errorf("try %s: held by this client: %w", key, impls.ErrBusy)
	}
	r, cancel := request(ctx, c.cfg.Timeout)
	defer cancel()
	h, err := c.lock(r, key, a, (*concurrency.Mutex).TryLock)
	if err != nil {
		return nil, fmt.Errorf("try %s: %w", key, err)
	}
	return h, nil
}

// holding is the session with which this client holds key, or nil.
func (c *libraryClient) holding(key string) *session {
	for _, claim := range c.claims {
		if claim.held && claim.key == key && !claim.session.isLost() {
			return claim.session
		}
	}
	return nil
}

func (c *libraryClient) lock(r *requestContext, key string, a impls.Attempt, ask func(*concurrency.Mutex, context.Context) error) (*hold, error) {
	s, err := c.live(r.Context)
	if err != nil {
		return nil, err
	}
	m := concurrency.NewMutex(c.lib, libraryPrefix(key))
	c.trace(r, m)
	err = c.outcome(ask(m, r), m, r, s)
	if err := c.claims.Took(a, claim{key, s, err == nil}, err); err != nil {
		return nil, err
	}
	return newHold(s, key, a, uint64(m.Header().Revision), func(ctx context.Context) error { return c.unlock(ctx, m, a) }).granted(), nil
}

// trace reaches the steps of a wait, which the library hides, by the reads
// before and after each watch.
func (c *libraryClient) trace(r *requestContext, m *concurrency.Mutex) {
	ctx, waiting := r.Context, false
	r.sending = func() {
		if waiting {
			waiting = false
			c.cfg.Reach(ctx, impls.StepWoken)
		}
	}
	r.answered = func(reply any) {
		read, ok := reply.(*pb.RangeResponse)
		if ok && len(read.Kvs) > 0 && string(read.Kvs[0].Key) != m.Key() {
			waiting = true
			c.cfg.Reach(ctx, impls.StepWaiting)
		}
	}
}

// released is the library's key of a Mutex after it deleted the key.
const released = "\x00"

// outcome returns the outcome of a Lock or TryLock.
func (c *libraryClient) outcome(err error, m *concurrency.Mutex, r *requestContext, s *session) error {
	isOwner := m.IsOwner()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, concurrency.ErrLocked):
		return impls.ErrBusy
	case errors.Is(err, concurrency.ErrSessionExpired):
		return fmt.Errorf("%w: the lease and its key ended during the wait: %w", impls.ErrFailed, err)
	case m.Key() == released:
		return fmt.Errorf("gave up waiting: %w: %w", impls.ErrFailed, err)
	case isOwner.GetCompare().GetCreateRevision() > 0:
		return fmt.Errorf("%w: the key in the queue remains: %w", impls.ErrUnknown, err)
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		s.lose()
	}
	return outcome(err, r.sent)
}

func (c *libraryClient) unlock(ctx context.Context, m *concurrency.Mutex, a impls.Attempt) error {
	return c.claims.Finish(ctx, a, func(ctx context.Context, _ claim) error {
		r, cancel := request(ctx, c.cfg.Timeout)
		defer cancel()
		return outcome(m.Unlock(r), r.sent)
	})
}

// Cleanup deletes the session's key if the attempt may have written it. If the
// key does not exist, a request of the attempt may still be under way: then
// Cleanup revokes the lease, without which that request fails. It has no record
// of another client's attempts.
func (c *libraryClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return impls.Settled("clean up", key, c.claims.Finish(ctx, a, func(ctx context.Context, own claim) error {
		err := c.remove(ctx, lockKey(key, own.session))
		if errors.Is(err, impls.ErrLost) && !own.held {
			err = c.revoke(ctx, own.session)
		}
		return err
	}))
}

// revoke ends a session and its lease: ErrLost, since nothing of it can be left, or
// unknown.
func (c *libraryClient) revoke(ctx context.Context, s *session) error {
	r, cancel := request(ctx, c.cfg.Timeout)
	defer cancel()
	_, err := c.api.Revoke(r, s.lease)
	if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("revoke the lease: %w", outcome(err, r.sent))
	}
	s.lose()
	return impls.ErrLost
}
