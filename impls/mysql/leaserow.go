package mysql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// The statements compare and write in one step of the server, and take the
// time from its clock alone. UTC_TIMESTAMP does not jump with a time zone's
// summer. LAST_INSERT_ID(n) hands the new fence back with the reply.
const (
	createRows = `CREATE TABLE IF NOT EXISTS lockbench_lease (
  name    VARBINARY(255)  NOT NULL PRIMARY KEY,
  owner   VARBINARY(32)   NOT NULL DEFAULT '',
  fence   BIGINT UNSIGNED NOT NULL DEFAULT 0,
  expires DATETIME(6)     NOT NULL DEFAULT '2000-01-01 00:00:00'
) ENGINE=InnoDB`

	insertRows = `INSERT IGNORE INTO lockbench_lease (name) VALUES `

	takeRow = `UPDATE lockbench_lease
SET owner = ?, fence = LAST_INSERT_ID(fence + 1), expires = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE name = ? AND (owner = '' OR expires < UTC_TIMESTAMP(6))`

	extendRow = `UPDATE lockbench_lease
SET expires = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE name = ? AND owner = ? AND fence = ? AND expires >= UTC_TIMESTAMP(6)`

	freeRow = `UPDATE lockbench_lease
SET owner = ''
WHERE name = ? AND owner = ? AND fence = ? AND expires >= UTC_TIMESTAMP(6)`

	cleanRow = `UPDATE lockbench_lease
SET owner = ''
WHERE name = ? AND owner = ? AND expires >= UTC_TIMESTAMP(6)`
)

// leaseRow is mysql/lease-row: a row per key with its owner, the end of the
// lease, and a number that grows with every grant.
//
//	acquire  UPDATE the row to be ours, its fence one more, if it is nobody's or its lease is over
//	extend   UPDATE the lease's end, if the row is still ours with that fence, and the lease not over
//	release  UPDATE the row to be nobody's, on the same conditions
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's clock. Takeover: at the TTL's end, plus the
// rest of a poll. An owner whose lease is over stands in the row until somebody
// else takes it, but can neither extend nor release it.
//
// It promises one holder until the TTL is over, and fencing tokens that grow.
// It fails when the holder goes on after that and nothing checks its token,
// when the server's clock is set forward, and, tokens included, when a commit
// is lost: by a crash where the log is not flushed at each commit, or a failover
// to a replica that had not received it. Of a Galera cluster every server takes it,
// for what two have changed at once only one of them commits; the other answers
// that its transaction was rolled back. Each statement waits there until the
// server has applied what was ordered before it (wsrep_sync_wait).
//
// Source: the lock table of many schedulers, with a fence column and no client's
// clock.
type leaseRow struct{}

func (leaseRow) Info() impls.Info {
	return impls.Info{
		ID:       "mysql/lease-row",
		Backend:  "mysql",
		Summary:  "UPDATE of a row with owner, fence and expiry by the server's clock",
		Promise:  "one holder until its TTL is over, and growing fencing tokens, on one server that keeps its commits, one replaced by another that has them all, or several that agree on each, whose clocks agree and are not set",
		Document: "the lock table of many schedulers, with a fence column and the server's clock alone",
		Bound:    impls.BoundTTL,
		Properties: []impls.Property{impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Blocking, impls.NonBlocking,
			impls.Expiry, impls.ReportsLost, impls.CleansUp, impls.Extends, impls.Once},
		Fencing:  true,
		Unfenced: []string{replicated},
		Polls:    true,

		Topologies:  rowsAnywhere(),
		AvailableOn: []string{galera},
		RoundTrips:  2,
		Requests:    []string{"com_update", "com_kill"},
		Takeover:    func(ttl time.Duration) time.Duration { return ttl },
	}
}

func (leaseRow) CheckTTL(ttl time.Duration, _ impls.Limits) error {
	if ttl < time.Microsecond || ttl%time.Microsecond != 0 {
		return fmt.Errorf("mysql/lease-row cannot serve a TTL of %s: the server counts whole microseconds, at least 1µs", ttl)
	}
	return nil
}

// Prepare creates the table, and a row for each key: a key without a row looks
// busy for ever. Rows that are there stay as they are, for their fences.
func (leaseRow) Prepare(ctx context.Context, cfg impls.Config, keys []string) error {
	c, err := createTable(ctx, cfg, "mysql/lease-row", createRows, keys)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.addRows(ctx, "mysql/lease-row", insertRows, keys)
}

func (leaseRow) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	// Rows are counted by match, so that a renewal in the same microsecond,
	// which changes nothing, still counts.
	c, err := open(ctx, cfg, options{foundRows: true})
	if err != nil {
		return nil, err
	}
	return &rowClient{client: c}, nil
}

type rowClient struct{ *client }

func (c *rowClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
		h, err := c.TryAcquire(ctx, key, a)
		if errors.Is(err, errRefused) {
			err = impls.ErrBusy // as good as: ask again
		}
		return h, err
	})
}

func (c *rowClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	if err := started(ctx, "acquire", key); err != nil {
		return nil, err
	}
	s, err := c.session(ctx)
	if err != nil {
		return nil, outcome("acquire", key, err)
	}
	owner := a.String()
	sent := impls.Monotonic(c.cfg.Clock)
	res, err := c.exec(ctx, s, takeRow, owner, c.cfg.TTL.Microseconds(), key)
	if err != nil {
		return nil, c.fail("acquire", key, err)
	}
	// Neither call can fail: the driver has both numbers from the reply.
	rows, _ := res.RowsAffected()
	if rows == 0 {
		return nil, impls.ErrBusy
	}
	fence, _ := res.LastInsertId()
	return impls.NewLease(key, a, uint64(fence), sent, impls.Leaser{
		Clock: c.cfg.Clock,
		TTL:   c.cfg.TTL,
		Extend: func(ctx context.Context) error {
			return c.update(ctx, "extend", key, extendRow, c.cfg.TTL.Microseconds(), key, owner, fence)
		},
		Free: func(ctx context.Context) error { return c.update(ctx, "release", key, freeRow, key, owner, fence) },
	}), nil
}

// Cleanup first makes sure that nothing of an earlier connection can still
// reach the table, then frees the row if it is the attempt's.
func (c *rowClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	if err := c.settle(ctx, "clean up", key); err != nil {
		return err
	}
	return c.update(ctx, "clean up", key, cleanRow, key, a.String())
}

// update runs a statement that matches one row if the attempt still owns it,
// else none, again as long as the server refuses for the moment.
func (c *rowClient) update(ctx context.Context, doing, key, stmt string, args ...any) error {
	for {
		err := c.updateOnce(ctx, doing, key, stmt, args...)
		if !errors.Is(err, errRefused) || c.cfg.Clock.Sleep(ctx, c.cfg.Wait.Next()) != nil {
			return err
		}
	}
}

func (c *rowClient) updateOnce(ctx context.Context, doing, key, stmt string, args ...any) error {
	if err := started(ctx, doing, key); err != nil {
		return err
	}
	s, err := c.session(ctx)
	if err != nil {
		return outcome(doing, key, err)
	}
	res, err := c.exec(ctx, s, stmt, args...)
	if err != nil {
		return c.fail(doing, key, err)
	}
	if rows, _ := res.RowsAffected(); rows == 0 {
		return impls.ErrLost
	}
	return nil
}
