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

// clientMutex is etcd/client-mutex: the Mutex and Session of the client library,
// as its users use them: one session per client, one Mutex per attempt.
//
//	acquire  Lock: put a key named by the session's lease, unless it is there, and
//	         read in the same transaction who is first in the queue; that is us:
//	         ours. Otherwise wait until all older keys are gone, each time for the
//	         newest of them, and see whether our own is still there
//	try      TryLock: the same, and delete the key if it is not the first
//	release  Unlock: delete the key
//
// Round trips: 1 to acquire, 1 to release, each a write that a quorum has on
// disk; a waiter adds its watch and 3 reads, a refused try a deletion.
// Bound: the session, a lease that the library renews three times in a TTL, by
// its own clock. Takeover: the TTL, and up to a second until the server has
// noticed and revoked the lease.
//
// It promises one holder at a time, in order of arrival, while its lease lives,
// and a fencing token: the revision at which the library found itself the
// holder. Where the library falls short of etcd/mutex:
//
//   - The key belongs to the session and not to the attempt, so that a second
//     Mutex of the session holds as soon as the first does. This client therefore
//     remembers what it holds, and does not ask the library for it again.
//   - Unlock does not say whether the key was still there: a lock that was lost
//     is released without a word.
//   - A Lock that fails in its first request leaves its key behind, if that was
//     written, and Unlock does not delete it. Cleanup does; and if there is none,
//     so that it might still come, Cleanup revokes the lease, which ends whatever
//     else this client holds.
//   - A wait whose ctx ended deletes its key without a time limit: it lasts until
//     a server answers, or the driver has given up the connection.
//   - The watch begins at the revision of the last look, and a server serves
//     watches that begin in the past every 100 ms only. It does not ask for a
//     leader either, so that a member which is cut off keeps it waiting.
//
// Source: etcd's client library, package concurrency.
type clientMutex struct{ leased }

func (clientMutex) Info() impls.Info {
	return describe(impls.Info{
		ID:       "etcd/client-mutex",
		Summary:  "the client library's Mutex and Session: a key per session, ordered by create revision; each waiter watches the key before its own",
		Promise:  "one holder at a time, in order of arrival, while its lease lives; tokens grow with every grant",
		Document: "etcd's client library, package concurrency",
		Fails:    "two locks of one session both hold; the release of a lost lock says nothing; a first request in doubt costs the session",
		Fencing:  true,
		Properties: []impls.Property{
			impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Available, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.Ordered, impls.CleansUp, impls.SignalsLoss, impls.Once,
		},
	})
}

func (clientMutex) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	heard := &listener{cfg: cfg}
	base, err := connect(cfg, grpc.WithChainStreamInterceptor(heard.listen))
	if err != nil {
		return nil, err
	}
	c := &libraryClient{client: base, claims: impls.Claims[claim]{}}
	c.renew = func(s *session) (func(), error) {
		heard.of(s)
		lib, err := concurrency.NewSession(c.api, concurrency.WithLease(s.lease), concurrency.WithContext(c.background))
		if err != nil {
			return nil, err
		}
		c.lib = lib
		return func() {
			<-lib.Done()
			if c.background.Err() == nil {
				s.lose() // not merely closed
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

// claim is what the client remembers of an attempt that may have a key on the
// servers.
type claim struct {
	key     string
	session *session
	held    bool // the library said so
}

// libraryPrefix is the prefix that the library is given for a lock; it adds a slash.
func libraryPrefix(key string) string { return place("client", key) }

// lockKey is the name that the library gives to a session's key.
func lockKey(key string, s *session) string { return fmt.Sprintf("%s/%x", libraryPrefix(key), s.lease) }

func (c *libraryClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	for mine := c.holding(key); mine != nil; mine = c.holding(key) {
		c.cfg.Reach(ctx, impls.StepWaiting)
		select {
		case <-mine.alive.Done():
		case <-ctx.Done():
			return nil, fmt.Errorf("acquire %s: this client holds it itself: %w: %w", key, impls.ErrFailed, ctx.Err())
		}
	}
	// The library knows one context for the whole wait, so that a request has
	// no time limit of its own.
	h, err := c.lock(&requestContext{Context: ctx}, key, a, (*concurrency.Mutex).Lock)
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", key, err)
	}
	return h, nil
}

func (c *libraryClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	if c.holding(key) != nil {
		return nil, fmt.Errorf("try %s: by this client: %w", key, impls.ErrBusy)
	}
	r, cancel := request(ctx, c.cfg.Timeout)
	defer cancel()
	h, err := c.lock(r, key, a, (*concurrency.Mutex).TryLock)
	if err != nil {
		return nil, fmt.Errorf("try %s: %w", key, err)
	}
	return h, nil
}

// holding is the session by which this client holds key, nil if it does not.
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

// trace reaches the steps of a wait, which is hidden in the library: it shows
// by the reads before and after each watch.
func (c *libraryClient) trace(r *requestContext, m *concurrency.Mutex) {
	ctx, waiting := r.Context, false
	r.asking = func() {
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

// released is what the library calls the key of a Mutex whose key it has
// deleted.
const released = "\x00"

// outcome names what a Lock or TryLock came to.
func (c *libraryClient) outcome(err error, m *concurrency.Mutex, r *requestContext, s *session) error {
	isOwner := m.IsOwner()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, concurrency.ErrLocked):
		return impls.ErrBusy
	case errors.Is(err, concurrency.ErrSessionExpired):
		return fmt.Errorf("%w: the lease ended while we waited, and our place in the queue with it: %w", impls.ErrFailed, err)
	case m.Key() == released:
		return fmt.Errorf("gave up waiting: %w: %w", impls.ErrFailed, err)
	case isOwner.GetCompare().GetCreateRevision() > 0:
		return fmt.Errorf("%w: the place in the queue remains: %w", impls.ErrUnknown, err)
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

// Cleanup deletes the session's key if the attempt may have written it. If it
// is not there, a request of the attempt may still be on its way: then Cleanup
// revokes the lease, without which that cannot succeed. It knows nothing of
// another client's attempts.
func (c *libraryClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return impls.Settled("clean up", key, c.claims.Finish(ctx, a, func(ctx context.Context, mine claim) error {
		err := c.remove(ctx, lockKey(key, mine.session))
		if errors.Is(err, impls.ErrLost) && !mine.held {
			err = c.revoke(ctx, mine.session)
		}
		return err
	}))
}

// revoke ends a session and its lease: ErrLost, for nothing of it can be left,
// or a doubt.
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
