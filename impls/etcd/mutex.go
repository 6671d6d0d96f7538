package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/impls"
)

// mutex is etcd/mutex: a queue of keys in the order of their create revisions.
//
//	acquire  put a key named by the attempt, bound to the client's lease, and
//	         read in the same transaction who stands before it; nobody: ours.
//	         Otherwise watch that one key until it is deleted, and look again:
//	         our own key may have died with the lease meanwhile, and the one
//	         before it may have left from the middle of the queue
//	release  delete the key
//
// Round trips: 1 to acquire, 1 to release, each a write that a quorum has on
// disk; a waiter adds its watch and 2 reads.
// Bound: the session, a lease that the client renews three times in a TTL.
// Takeover: the TTL, and up to a second until the server has noticed and
// revoked the lease.
//
// It promises one holder at a time, in order of arrival, while its lease lives,
// and a fencing token, the key's create revision, which a failover does not
// turn back. It fails when a holder that was stopped or cut off goes on although
// its lease ended, and nothing checks its token: Lost tells it, but cannot stop
// it. A restore from a backup turns revisions back.
//
// Source: the lock of etcd's client library, written anew with a key per attempt
// instead of one per lease.
type mutex struct{}

func (mutex) Info() impls.Info {
	return impls.Info{
		ID:         "etcd/mutex",
		Backend:    "etcd",
		Summary:    "one lease per client; a key per attempt, ordered by create revision; each waiter watches the key before its own",
		Promise:    "one holder at a time, in order of arrival, while its lease lives; tokens grow with every grant",
		Document:   "the lock of etcd's client library, written anew with one key per attempt",
		Bound:      impls.BoundSession,
		Fencing:    true,
		Topologies: []string{"single", "quorum"},
		RoundTrips: 2,
		Requests:   []string{"Txn", "Range", "DeleteRange", "Watch"},
		// The server looks for expired leases twice a second, and revokes
		// them by a write of its own.
		Takeover: func(ttl time.Duration) time.Duration { return ttl + time.Second },
	}
}

func (mutex) CheckTTL(ttl time.Duration, lim impls.Limits) error { return checkTTL(ttl, lim) }

// Prepare does nothing: keys need no parents.
func (mutex) Prepare(context.Context, impls.Config, []string) error { return nil }

func (mutex) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	api, err := dial(cfg)
	if err != nil {
		return nil, err
	}
	background, stop := context.WithCancel(context.Background())
	c := &client{cfg: cfg, api: api, background: background, stop: stop}
	if _, err := c.live(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open an etcd client: %w", err), c.Close())
	}
	return c, nil
}

type client struct {
	cfg impls.Config
	api *clientv3.Client

	background context.Context
	stop       context.CancelFunc
	running    sync.WaitGroup

	session *session // the newest; may be lost
	// last is the newest attempt and the session whose lease its key hangs on.
	last struct {
		attempt impls.Attempt
		session *session
	}
}

// live returns a session that is not known to be lost, a new one if need be.
func (c *client) live(ctx context.Context) (*session, error) {
	if c.session != nil && !c.session.isLost() {
		return c.session, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	s, err := grant(ctx, c.api, c.cfg.Clock, c.cfg.TTL)
	if err != nil {
		return nil, err
	}
	c.session = s
	c.running.Go(func() { s.keep(c.background, c.api, c.cfg.Clock) })
	return s, nil
}

// prefix is where the keys of a lock's queue stand.
func prefix(key string) string { return "lockbench/lock/" + url.PathEscape(key) + "/" }

// own is the key of one attempt.
func own(key string, a impls.Attempt) string { return prefix(key) + a.String() }

// void is a key that stands once the attempt is given up: then a transaction
// of it that was still on its way has no effect any more. Without it, a late
// acquire could take effect after its clean-up was answered.
func void(a impls.Attempt) string { return "lockbench/void/" + a.String() }

// absent compares true if the key is not there.
func absent(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), "=", 0) }

// commit sends one transaction. If the server no longer knows the lease that it
// names, the session ends now instead of at its next renewal, so that the next
// attempt begins with a new one.
func (c *client) commit(ctx context.Context, s *session, when []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	r, cancel := request(ctx, c.cfg.Timeout)
	defer cancel()
	resp, err := c.api.Txn(r).If(when...).Then(then...).Else(otherwise...).Commit()
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		s.lose()
	}
	return resp, outcome(err, r.sent)
}

// begin notes the session of a new attempt.
func (c *client) begin(ctx context.Context, a impls.Attempt) (*session, error) {
	s, err := c.live(ctx)
	if err != nil {
		// Whatever became of the lease, nothing of the attempt was sent.
		return nil, fmt.Errorf("%w: %w", impls.ErrFailed, err)
	}
	c.last.attempt, c.last.session = a, s
	return s, nil
}

func (c *client) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	h, err := c.acquire(ctx, key, a)
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", key, err)
	}
	return h, nil
}

func (c *client) acquire(ctx context.Context, key string, a impls.Attempt) (*hold, error) {
	s, err := c.begin(ctx, a)
	if err != nil {
		return nil, err
	}
	me := own(key, a)
	resp, err := c.commit(ctx, s, []clientv3.Cmp{absent(void(a))}, []clientv3.Op{
		clientv3.OpPut(me, "", clientv3.WithLease(s.lease)),
		clientv3.OpGet(prefix(key), lastTwo()...),
	}, nil)
	if err != nil {
		return nil, err
	}
	if !resp.Succeeded {
		return nil, fmt.Errorf("%w: attempt %s was cleaned up before", impls.ErrFailed, a)
	}
	// The newest key is the one just written.
	queue := resp.Responses[1].GetResponseRange().Kvs
	h := &hold{client: c, session: s, key: key, attempt: a, fence: uint64(queue[0].CreateRevision)}
	if len(queue) > 1 {
		err = c.wait(ctx, h, string(queue[1].Key))
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// lastTwo asks for the newest key of a prefix and the one before it.
func lastTwo() []clientv3.OpOption {
	return []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(2),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend)}
}

// TryAcquire writes the key only if the queue is empty, so that a busy lock
// leaves nothing to clean up.
func (c *client) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	s, err := c.begin(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("try %s: %w", key, err)
	}
	resp, err := c.commit(ctx, s,
		[]clientv3.Cmp{absent(prefix(key)).WithPrefix(), absent(void(a))},
		[]clientv3.Op{clientv3.OpPut(own(key, a), "", clientv3.WithLease(s.lease))},
		[]clientv3.Op{clientv3.OpGet(void(a), clientv3.WithCountOnly())})
	switch {
	case err != nil:
		return nil, fmt.Errorf("try %s: %w", key, err)
	case resp.Succeeded:
		return &hold{client: c, session: s, key: key, attempt: a, fence: uint64(resp.Header.Revision)}, nil
	case resp.Responses[0].GetResponseRange().Count > 0:
		return nil, fmt.Errorf("try %s: %w: attempt %s was cleaned up before", key, impls.ErrFailed, a)
	default:
		return nil, impls.ErrBusy
	}
}

// Cleanup deletes the attempt's key, or makes sure that it can never come.
func (c *client) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	s := c.last.session
	if s == nil || c.last.attempt != a {
		var err error
		if s, err = c.live(ctx); err != nil {
			return fmt.Errorf("clean up %s: %w: %w", key, impls.ErrFailed, err)
		}
	}
	me := own(key, a)
	resp, err := c.commit(ctx, s, []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(me), ">", 0)},
		[]clientv3.Op{clientv3.OpDelete(me)},
		[]clientv3.Op{clientv3.OpPut(void(a), "", clientv3.WithLease(s.lease))})
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound) && c.last.attempt == a:
		// The key is not there, and without the lease that it names no late
		// transaction can write it.
		return impls.ErrLost
	case err != nil:
		return fmt.Errorf("clean up %s: %w", key, err)
	case !resp.Succeeded:
		return impls.ErrLost
	default:
		return nil
	}
}

// Close ends the renewals and the connections. The lease, and with it whatever
// hangs on it, lives on until its time is over.
func (c *client) Close() error {
	c.stop()
	err := c.api.Close()
	c.running.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil // how the driver says that it was closed
	}
	return err
}

type hold struct {
	client  *client
	session *session
	key     string
	attempt impls.Attempt
	fence   uint64
	over    bool // a release has said so, definitely
}

func (h *hold) Key() string            { return h.key }
func (h *hold) Attempt() impls.Attempt { return h.attempt }
func (h *hold) Fence() uint64          { return h.fence }
func (h *hold) LeaseEnd() time.Time    { return h.session.leaseEnd() }

// Lost is closed when the server said that the lease is gone, or when its end,
// counted from before the last confirmed renewal was asked for, passed without
// a newer one.
func (h *hold) Lost() <-chan struct{} { return h.session.alive.Done() }

// Extend is not supported: the session renews itself.
func (h *hold) Extend(context.Context) error {
	return fmt.Errorf("extend %s: the session renews itself: %w", h.key, errors.ErrUnsupported)
}

// Release deletes the key. It is named by the attempt, so that no other can be
// hit.
func (h *hold) Release(ctx context.Context) error {
	if h.over {
		return impls.ErrLost
	}
	r, cancel := request(ctx, h.client.cfg.Timeout)
	defer cancel()
	resp, err := h.client.api.Delete(r, own(h.key, h.attempt))
	if err = outcome(err, r.sent); err == nil && resp.Deleted == 0 {
		err = impls.ErrLost
	}
	h.over = impls.Definite(err)
	if h.over {
		return err
	}
	return fmt.Errorf("release %s: %w", h.key, err)
}
