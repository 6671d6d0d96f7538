package mysql

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// insertReaper is mysql/insert-reaper: mysql/insert, and a job that deletes the
// rows of those who seem to have died, because they are old.
//
//	acquire  INSERT the row; again after a wait as long as its key is there
//	release  DELETE the row, by its key alone
//	job      DELETE all rows older than the TTL, every quarter of it
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll. The job,
// which the documents have the application run, runs beside every client, on a
// connection of its own: its 4 deletes per TTL and client are in the requests
// that the server counts.
// Bound: the TTL, by the server's clock, in whole seconds: 2 minutes in the
// document. Rows are never deleted younger than that. Takeover: the TTL, and up
// to a second since the table's times have no fractions, and up to a quarter of
// the TTL until a job comes round; some client must be alive to run one.
//
// It promises one holder until the TTL is over. It fails when a live holder
// takes longer: the job evicts it all the same, and its late delete, which does
// not ask whose the row is, frees the successor's lock, for a third to take.
// What Cleanup promises is what mysql/insert says.
//
// Source: an article on the design of locks, its job clear_timeout_lock; a
// blog's comparison of three ways to build a lock names the same cure.
type insertReaper struct{}

func (insertReaper) orders() orders {
	return orders{recipe: "mysql/insert-reaper", table: "lockbench_insert_reaper"}
}

// reapEvery is how many times per TTL the job runs.
const reapEvery = 4

func (insertReaper) Info() impls.Info {
	return impls.Info{
		ID:       "mysql/insert-reaper",
		Backend:  "mysql",
		Summary:  "INSERT of a row with a unique key, DELETE by that key; a job beside every client deletes rows older than the TTL (2m in the document) 4 times per TTL",
		Promise:  "one holder until its TTL is over, as long as none is late to release and no commit is lost (failover)",
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

// maxReaperTTL is the longest time that the server subtracts from another.
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

// reap deletes the rows older than the TTL again and again until ctx ends. A
// round that fails is made good by the next.
func reap(ctx context.Context, c *client, table string) {
	ttl := c.cfg.TTL
	age := fmt.Sprintf("-%02d:%02d:%02d", ttl/time.Hour, ttl%time.Hour/time.Minute, ttl%time.Minute/time.Second)
	for c.cfg.Clock.Sleep(ctx, ttl/reapEvery) == nil {
		s, err := c.session(ctx)
		if err != nil {
			continue
		}
		// Nothing depends on whether a delete that was cut off is carried out.
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

// Close stops the client's job, too.
func (c *reaperClient) Close() error {
	c.stop()
	<-c.stopped
	return c.insertClient.Close()
}
