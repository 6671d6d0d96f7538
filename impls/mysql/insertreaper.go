package mysql

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// insertReaper is mysql/insert-reaper: mysql/insert, and a job that deletes old
// rows, whose holders seem to be dead.
//
// Document: an article on the design of locks, its job clear_timeout_lock; a
// blog's comparison of three ways to build a lock proposes the same.
//
//	acquire  INSERT the row; again after a wait while its key exists
//	release  DELETE the row, by its key alone
//	job      DELETE all rows older than the TTL, four times per TTL
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll. The job,
// which in the documents belongs to the application, runs beside every client,
// on a connection of its own: its 4 deletes per TTL and client are among the
// counted requests.
// Bound: the TTL, by the server's clock, in whole seconds: 2 minutes in the
// document. No row is deleted before. Takeover: the TTL, up to a second since
// the table's times have no fractions, and up to a quarter of the TTL until a
// job runs; some client must be alive.
// Guarantee: one holder until the end of the TTL.
// Failure: a live holder is slower than the TTL: the job evicts it, and its
// late delete, which does not check the owner, frees its successor's lock.
// Cleanup is that of mysql/insert.
type insertReaper struct{}

func (insertReaper) orders() orders {
	return orders{recipe: "mysql/insert-reaper", table: "lockbench_insert_reaper"}
}

// reapEvery is the number of job runs per TTL.
const reapEvery = 4

func (insertReaper) Info() impls.Info {
	return impls.Info{
		ID:       "mysql/insert-reaper",
		Backend:  "mysql",
		Summary:  "INSERT of a row with a unique key, DELETE by that key; a job beside every client deletes rows older than the TTL (2m in the document) 4 times per TTL",
		Promise:  "one holder until its TTL is over, while no holder is late to release and no commit is lost (failover)",
		Document: "an article on the design of locks: the table of locked orders with its job that clears timed out locks",
		Bound:    impls.BoundTTL,
		Fails:    "the job evicts a live holder slower than the TTL, whose late delete then frees its successor's lock",
		Properties: []impls.Property{impls.Exclusive, impls.DeadlockFree, impls.Blocking, impls.NonBlocking, impls.Expiry,
			impls.CleansUp, impls.Once},
		Polls: true,

		Topologies: anywhere(),
		RoundTrips: 2,
		Requests:   []string{"com_insert", "com_delete", "com_kill"},
		Takeover:   func(ttl time.Duration) time.Duration { return ttl + time.Second + ttl/reapEvery },
	}
}

// maxReaperTTL is the longest time that the server can subtract from another.
const maxReaperTTL = 838 * time.Hour

func (insertReaper) CheckTTL(ttl time.Duration, _ impls.Limits) error {
	if ttl < time.Second || ttl%time.Second != 0 || ttl > maxReaperTTL {
		return fmt.Errorf("mysql/insert-reaper cannot serve a TTL of %s: the table's times are whole seconds; choose 1s, 2s and so on up to %s", ttl, maxReaperTTL)
	}
	return nil
}

func (r insertReaper) Prepare(ctx context.Context, cfg impls.Config, keys []string) error {
	return r.orders().prepare(ctx, cfg, keys)
}

func (r insertReaper) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	if err := r.CheckTTL(cfg.TTL, impls.Limits{}); err != nil {
		return nil, err
	}
	c, err := r.orders().open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	job, err := open(ctx, cfg, options{})
	if err != nil {
		c.Close()
		return nil, err
	}
	jctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	rc := &reaperClient{insertClient: insertClient{c}, stop: stop, stopped: make(chan struct{})}
	go func() {
		defer close(rc.stopped)
		defer job.Close()
		reap(jctx, job, c.table)
	}()
	return rc, nil
}

// reap deletes the rows older than the TTL until ctx ends. A failed round is
// repeated by the next.
func reap(ctx context.Context, c *client, table string) {
	ttl := c.cfg.TTL
	age := fmt.Sprintf("-%02d:%02d:%02d", ttl/time.Hour, ttl%time.Hour/time.Minute, ttl%time.Minute/time.Second)
	for c.cfg.Clock.Sleep(ctx, ttl/reapEvery) == nil {
		s, err := c.session(ctx)
		if err != nil {
			continue
		}
		// Nothing depends on the outcome of an interrupted delete.
		if _, err := s.conn.ExecContext(ctx, "DELETE FROM "+table+" WHERE update_time < ADDTIME(NOW(), ?)", age); err != nil {
			_ = c.fail("reap", table, err)
			c.past = nil
		}
	}
}

type reaperClient struct {
	insertClient
	stop    func()
	stopped chan struct{}
}

func (c *reaperClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *reaperClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	sent := impls.Monotonic(c.cfg.Clock)
	if err := c.insert(ctx, key, a, ""); err != nil {
		return nil, err
	}
	h := c.hold(key, a, func(ctx context.Context) error { return c.remove(ctx, "release", key) })
	h.end = sent.Add(c.cfg.TTL)
	return h, nil
}

// Close also stops the client's job.
func (c *reaperClient) Close() error {
	c.stop()
	<-c.stopped
	return c.insertClient.Close()
}
