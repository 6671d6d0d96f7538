package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// The statements compare and write atomically, with the server's clock alone.
// UTC_TIMESTAMP ignores daylight saving time. LAST_INSERT_ID(n) returns the new
// fence with the reply.
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

	readOwner = `SELECT owner FROM lockbench_lease WHERE name = ? AND expires >= UTC_TIMESTAMP(6)`
)

// leaseRow is mysql/lease-row: a row per key with its owner, the end of the
// lease, and a number that grows with every grant.
//
// Document: the lock table of many schedulers, with a fence column and the
// server's clock alone.
//
//	acquire  UPDATE owner, fence + 1 and expiry of the row, if it has no owner or its lease
//	         is over
//	extend   UPDATE the expiry, if the row still has our attempt and fence, and the lease is
//	         not over
//	release  UPDATE the row to no owner, on the same conditions
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's clock. Takeover: at the end of the TTL, plus
// the rest of a poll. The owner of an ended lease remains in the row until the
// next grant, but can neither extend nor release it.
// Guarantee: one holder until the end of the TTL, and fencing tokens that grow.
// On a Galera cluster every server grants it: of two changes only one commits,
// and the other is rolled back. Each statement waits there until the server has
// applied earlier commits (wsrep_sync_wait).
// Failure: a holder that continues after its lease, if the resource does not
// check its token; a server clock that is set forward; a lost commit, tokens
// included: by a crash where the log is not flushed at each commit, or a
// failover to a replica that had not received it. A primary that is cut off from
// its replica grants locks beside its successor; semi-synchronous replication
// delays that by its timeout.
type leaseRow struct{}

func (leaseRow) Info() impls.Info {
	return impls.Info{
		ID:       "mysql/lease-row",
		Backend:  "mysql",
		Summary:  "UPDATE of a row with owner, fence and expiry by the server's clock",
		Promise:  "one holder until its TTL is over, and growing fencing tokens, on one server that keeps its commits, one replaced by another that has them all, or several that agree on each, whose clocks agree and are not changed",
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

// Prepare creates the table, and a row for each key: a key without a row is
// always busy. Existing rows remain, for their fences.
func (leaseRow) Prepare(ctx context.Context, cfg impls.Config, keys []string) error {
	c, err := createTable(ctx, cfg, "mysql/lease-row", createRows, keys)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.addRows(ctx, "mysql/lease-row", insertRows, keys)
}

func (leaseRow) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	// Count matching rows: a renewal within the same microsecond changes
	// nothing, but counts.
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
			err = impls.ErrBusy // treat as busy and retry
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
	// Neither call can fail: the driver takes both numbers from the reply.
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

// Cleanup first ends all abandoned connections, then frees the row if it is the
// attempt's.
func (c *rowClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	if err := c.settle(ctx, "clean up", key); err != nil {
		return err
	}
	return c.update(ctx, "clean up", key, cleanRow, key, a.String())
}

// update runs a statement that matches one row if the attempt still owns it,
// and none otherwise; it retries after a deadlock.
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

// Left reads the owner of the row, unless its lease is over.
func (c *rowClient) Left(ctx context.Context, key string) ([]impls.Entry, error) {
	s, err := c.session(ctx)
	if err != nil {
		return nil, outcome("list", key, err)
	}
	ctx, cancel := c.shortly(ctx)
	defer cancel()
	var owner string
	err = s.conn.QueryRowContext(ctx, readOwner, key).Scan(&owner)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, c.fail("list", key, err)
	}
	return impls.ParseEntries("", owner), nil
}
