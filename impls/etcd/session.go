package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/impls"
)

// session is a client's lease as far as the client knows it.
//
// The server counts the lease from its grant or renewal; the session counts
// from before the request. So the lease lasts at least until end, as long as
// both clocks run at the same rate. With a lock delay the server keeps the lease, and
// with it the keys, for that much longer: the session is lost at end all the same.
type session struct {
	lease clientv3.LeaseID
	ttl   time.Duration

	// alive ends when the server reported that the lease is gone, or when end
	// passed without a confirmed renewal (or when the client library, which
	// then renews it, gave it up). In the second case the server may have the
	// lease for a moment longer.
	alive context.Context
	lose  context.CancelFunc

	// holds are the holds whose keys belong to the lease.
	holds impls.SessionHolds

	mu  sync.Mutex
	end time.Time
}

// renewals is how many renewals fit into a TTL.
const renewals = 3

// grant requests a new lease. It is for TTLs that checkTTL accepts, with the lock
// delay added.
func grant(ctx context.Context, api *clientv3.Client, cfg *impls.Config) (*session, error) {
	start, lease := impls.Monotonic(cfg.Clock), cfg.TTL+cfg.LockDelay
	resp, err := api.Grant(ctx, int64(lease/time.Second))
	if err != nil {
		return nil, fmt.Errorf("grant a lease of %v: %w", lease, err)
	}
	if got := time.Duration(resp.TTL) * time.Second; got != lease {
		return nil, fmt.Errorf("grant a lease of %v: the server grants %v instead; choose a TTL that it can serve", lease, got)
	}
	s := &session{lease: resp.ID, ttl: cfg.TTL, end: start.Add(cfg.TTL)}
	s.alive, s.lose = context.WithCancel(context.Background())
	return s, nil
}

// keep renews the lease until ctx ends or the lease is lost. It runs once per
// session, in its own goroutine.
func (s *session) keep(ctx context.Context, api *clientv3.Client, cfg *impls.Config) {
	clock, pause := cfg.Clock, s.ttl/renewals
	for clock.Sleep(ctx, pause) == nil {
		s.holds.Renewing(ctx, cfg)
		start := impls.Monotonic(clock)
		left := s.leaseEnd().Sub(start)
		if left <= 0 {
			s.lose()
			return
		}
		// The driver may repeat the request within this time; the stamp from
		// before the first try is then too early, never too late.
		once, cancel := context.WithTimeout(ctx, min(s.ttl/renewals, left))
		_, err := api.KeepAliveOnce(once, s.lease)
		cancel()
		switch {
		case err == nil:
			s.setEnd(start.Add(s.ttl))
			s.holds.Renewed(cfg, start, nil)
			pause = max(0, s.ttl/renewals-impls.Monotonic(clock).Sub(start))
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			s.holds.Renewed(cfg, start, fmt.Errorf("%w: %w", impls.ErrLost, err))
			s.lose()
			return
		default:
			s.holds.Renewed(cfg, start, rules().Outcome(err))
			// Retry soon, but not after the lease's end.
			pause = min(s.ttl/(10*renewals), max(0, s.leaseEnd().Sub(impls.Monotonic(clock))))
		}
	}
}

func (s *session) leaseEnd() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

func (s *session) setEnd(t time.Time) {
	s.mu.Lock()
	s.end = t
	s.mu.Unlock()
}

// isLost reports whether the session is lost.
func (s *session) isLost() bool { return s.alive.Err() != nil }
