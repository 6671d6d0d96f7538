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

// leased is what the recipes of this package have in common: their keys hang
// on a lease and need no parents.
type leased struct{}

func (leased) CheckTTL(ttl time.Duration, lim impls.Limits) error { return checkTTL(ttl, lim) }

// Prepare does nothing: keys need no parents.
func (leased) Prepare(context.Context, impls.Config, []string) error { return nil }

// describe adds to a recipe's description what holds for all of them.
func describe(i impls.Info) impls.Info {
	i.Backend = "etcd"
	i.Bound = impls.BoundSession
	i.Topologies = []string{"single", "quorum"}
	i.RoundTrips = 2
	i.Requests = []string{"Txn", "Range", "DeleteRange", "Watch"}
	// The server looks for expired leases twice a second, and revokes them by
	// a write of its own.
	i.Takeover = func(ttl time.Duration) time.Duration { return ttl + time.Second }
	// The driver deals its requests out to all servers, and some of them to a silent
	// one until that has been asked in vain whether it is there.
	i.DetectionTimeout = func(_, timeout time.Duration) time.Duration { return silence + timeout }
	return i
}

// client is one driver and the lease that its keys hang on.
type client struct {
	cfg impls.Config
	api *clientv3.Client

	background context.Context
	stop       context.CancelFunc
	running    sync.WaitGroup

	// renew begins to renew a new session, and returns what goes on with that
	// in a goroutine of its own until background ends or the session is lost.
	renew   func(*session) (keep func(), err error)
	session *session // the newest; may be lost
}

// connect opens the driver of a client, with a session whose lease it renews
// itself unless the caller says how.
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

// ready makes sure of a first session, and closes the client if there is none
// to be had.
func (c *client) ready(ctx context.Context) error {
	if _, err := c.live(ctx); err != nil {
		return errors.Join(fmt.Errorf("open an etcd client: %w", err), c.Close())
	}
	return nil
}

// live returns a session that is not known to be lost, a new one if need be.
// Whatever its error, nothing of an attempt was sent.
func (c *client) live(ctx context.Context) (*session, error) {
	if c.session != nil && !c.session.isLost() {
		return c.session, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	s, err := grant(ctx, c.api, c.cfg.Clock, c.cfg.TTL)
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

// place is where the keys of a lock stand. Each kind of lock has its own.
func place(kind, key string) string { return "lockbench/" + kind + "/" + url.PathEscape(key) }

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

// put writes an attempt's key if the lock is free: its create revision,
// ErrBusy, or another outcome. A refusal leaves nothing to clean up.
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

// take deletes an attempt's key if it is as mine says, or makes sure that it
// can never come: nil, ErrLost, or another outcome. The void key hangs on s; own
// tells whether the attempt's own key does too.
func (c *client) take(ctx context.Context, s *session, own bool, a impls.Attempt, key string, mine ...clientv3.Cmp) error {
	resp, err := c.commit(ctx, s, mine,
		[]clientv3.Op{clientv3.OpDelete(key)},
		[]clientv3.Op{clientv3.OpPut(void(a), "", clientv3.WithLease(s.lease))})
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound) && own:
		// The key is not there, and without the lease that it names no late
		// transaction can write it.
		return impls.ErrLost
	case err != nil:
		return err
	case !resp.Succeeded:
		return impls.ErrLost
	default:
		return nil
	}
}

// remove deletes a key, whoever wrote it: nil, ErrLost if it was not there, or
// another outcome.
func (c *client) remove(ctx context.Context, key string) error {
	r, cancel := request(ctx, c.cfg.Timeout)
	defer cancel()
	resp, err := c.api.Delete(r, key)
	if err = outcome(err, r.sent); err == nil && resp.Deleted == 0 {
		err = impls.ErrLost
	}
	return err
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

// hold is a lock held by a key that hangs on a session, which renews itself.
type hold struct {
	impls.Grant
	session *session
}

// newHold is a hold whose release free sends, and names its outcome.
func newHold(s *session, key string, a impls.Attempt, fence uint64, free func(context.Context) error) *hold {
	release := func(ctx context.Context) error {
		s.kept.Drop(a)
		return impls.Settled("release", key, free(ctx))
	}
	return &hold{Grant: impls.NewGrant(key, a, fence, release), session: s}
}

// granted notes that the lock is held now, and not only waited for.
func (h *hold) granted() *hold {
	h.session.kept.Add(h.Key(), h.Attempt())
	return h
}

func (h *hold) LeaseEnd() time.Time { return h.session.leaseEnd() }

// Lost is closed when the server said that the lease is gone, or when its end
// passed without a renewal: by our own count, from before the last confirmed one
// was asked for; or by that of the client library, for a session of its.
func (h *hold) Lost() <-chan struct{} { return h.session.alive.Done() }
