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
	"google.golang.org/grpc"

	"github.com/lockbench/lockbench/impls"
)

// leased is the common part of this package's recipes: their keys belong to a lease
// and need no preparation.
type leased struct{}

func (leased) CheckTTL(ttl time.Duration, lim impls.Limits) error { return checkTTL(ttl, lim) }

// Prepare does nothing: a lock is a key that an acquire creates.
func (leased) Prepare(context.Context, impls.Config, []string) error { return nil }

// describe adds to a recipe's description the facts of all recipes here.
func describe(i impls.Info) impls.Info {
	i.Backend = "etcd"
	i.Bound = impls.BoundSession
	i.Topologies = []string{"single", "quorum"}
	i.RoundTrips = 2
	i.Requests = []string{"Txn", "Range", "DeleteRange", "Watch"}
	i.Renewals = "LeaseKeepAlive"
	// The server looks for expired leases twice a second, and revokes them with a
	// write.
	i.Takeover = func(ttl time.Duration) time.Duration { return ttl + time.Second }
	// The driver distributes its requests over all servers, and sends some to a
	// silent one until its keepalive fails.
	i.DetectionTimeout = func(_, timeout time.Duration) time.Duration { return silence + timeout }
	return i
}

// client is one driver and the lease of its keys.
type client struct {
	cfg impls.Config
	api *clientv3.Client

	background context.Context
	stop       context.CancelFunc
	running    sync.WaitGroup

	// renew starts the renewal of a new session, and returns a function that
	// runs in its own goroutine until background ends or the session is lost.
	renew   func(*session) (keep func(), err error)
	session *session // the newest; may be lost
}

// connect opens the driver of a client, whose session is renewed by this
// package unless the caller replaces renew.
func connect(cfg impls.Config, options ...grpc.DialOption) (*client, error) {
	api, err := dial(cfg, options...)
	if err != nil {
		return nil, err
	}
	background, stop := context.WithCancel(context.Background())
	c := &client{cfg: cfg, api: api, background: background, stop: stop}
	c.renew = func(s *session) (func(), error) { return func() { s.keep(background, api, &c.cfg) }, nil }
	return c, nil
}

// ready opens the first session, and closes the client if that fails.
func (c *client) ready(ctx context.Context) error {
	if _, err := c.live(ctx); err != nil {
		return errors.Join(fmt.Errorf("open an etcd client: %w", err), c.Close())
	}
	return nil
}

// live returns a session that is not lost, if necessary a new one. If it fails,
// nothing of an attempt was sent.
func (c *client) live(ctx context.Context) (*session, error) {
	if c.session != nil && !c.session.isLost() {
		return c.session, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	s, err := grant(ctx, c.api, &c.cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", impls.ErrFailed, err)
	}
	keep, err := c.renew(s)
	if err != nil {
		return nil, fmt.Errorf("%w: renew a lease: %w", impls.ErrFailed, err)
	}
	c.session = s
	c.running.Go(keep)
	return s, nil
}

// place is the prefix of a lock's keys. Each kind of lock has its own.
func place(kind, key string) string { return "lockbench/" + kind + "/" + url.PathEscape(key) }

// void is a key that exists after the attempt was abandoned: a transaction of
// the attempt that is still under way then has no effect. Without it, a late
// acquire could take effect after its clean-up was answered.
func void(a impls.Attempt) string { return "lockbench/void/" + a.String() }

// absent is true if the key does not exist.
func absent(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), "=", 0) }

// commit sends one transaction. If the server does not know its lease any more,
// the session ends now and not at its next renewal, so that the next attempt
// opens a new one.
func (c *client) commit(ctx context.Context, s *session, when []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	r, cancel := request(ctx, c.cfg.Timeout)
	defer cancel()
	resp, err := c.api.Txn(r).If(when...).Then(then...).Else(otherwise...).Commit()
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		s.lose()
	}
	return resp, outcome(err, r.sent)
}

// put writes an attempt's key if the lock is free: its create revision, ErrBusy, or
// another outcome. A busy answer leaves nothing to clean up.
func (c *client) put(ctx context.Context, s *session, a impls.Attempt, free clientv3.Cmp, key string) (revision int64, err error) {
	resp, err := c.commit(ctx, s,
		[]clientv3.Cmp{free, absent(void(a))},
		[]clientv3.Op{clientv3.OpPut(key, "", clientv3.WithLease(s.lease))},
		[]clientv3.Op{clientv3.OpGet(void(a), clientv3.WithCountOnly())})
	switch {
	case err != nil:
		return 0, err
	case resp.Succeeded:
		return resp.Header.Revision, nil
	case resp.Responses[0].GetResponseRange().Count > 0:
		return 0, voided(a)
	default:
		return 0, impls.ErrBusy
	}
}

func voided(a impls.Attempt) error {
	return fmt.Errorf("%w: attempt %s was cleaned up before", impls.ErrFailed, a)
}

// take deletes an attempt's key if the comparisons hold, and otherwise prevents
// that it is ever written: nil, ErrLost, or another outcome. The void key
// belongs to s; own reports whether the attempt's own key does too.
func (c *client) take(ctx context.Context, s *session, own bool, a impls.Attempt, key string, match ...clientv3.Cmp) error {
	resp, err := c.commit(ctx, s, match,
		[]clientv3.Op{clientv3.OpDelete(key)},
		[]clientv3.Op{clientv3.OpPut(void(a), "", clientv3.WithLease(s.lease))})
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound) && own:
		// The key does not exist, and without its lease no late transaction can
		// write it.
		return impls.ErrLost
	case err != nil:
		return err
	case !resp.Succeeded:
		return impls.ErrLost
	default:
		return nil
	}
}

// remove deletes a key of any owner: nil, ErrLost if it did not exist, or another
// outcome.
func (c *client) remove(ctx context.Context, key string) error {
	r, cancel := request(ctx, c.cfg.Timeout)
	defer cancel()
	resp, err := c.api.Delete(r, key)
	if err = outcome(err, r.sent); err == nil && resp.Deleted == 0 {
		err = impls.ErrLost
	}
	return err
}

// Close ends the renewals and the connections. The lease and its keys remain
// until the lease expires.
func (c *client) Close() error {
	c.stop()
	err := c.api.Close()
	c.running.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil // the driver's result of a normal close
	}
	return err
}

// hold is a lock held by a key of a session, which is renewed.
type hold struct {
	impls.Grant
	session *session
}

// newHold is a hold that free releases.
func newHold(s *session, key string, a impls.Attempt, fence uint64, free func(context.Context) error) *hold {
	release := func(ctx context.Context) error {
		s.holds.Drop(a)
		return impls.Settled("release", key, free(ctx))
	}
	return &hold{Grant: impls.NewGrant(key, a, fence, release), session: s}
}

// granted marks the hold as held, not only waiting.
func (h *hold) granted() *hold {
	h.session.holds.Add(h.Key(), h.Attempt())
	return h
}

func (h *hold) LeaseEnd() time.Time { return h.session.leaseEnd() }

// Lost is closed when the server reported that the lease is gone, or when it
// ended without a confirmed renewal: by our own count, from before the last
// confirmed request; or by the client library's count, for its session.
func (h *hold) Lost() <-chan struct{} { return h.session.alive.Done() }
