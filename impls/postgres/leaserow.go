package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/impls"
)

// The statements compare and write in one step of the server, and take the time
// from its clock alone. clock_timestamp, unlike now, is that of the moment at
// which a statement that waited for the row goes on.
const (
	createRows = `CREATE TABLE IF NOT EXISTS lockbench_lease (
  name    text        NOT NULL PRIMARY KEY,
  owner   text        NOT NULL DEFAULT '',
  fence   bigint      NOT NULL DEFAULT 0,
  expires timestamptz NOT NULL DEFAULT '2000-01-01',
  ended   text[]      NOT NULL DEFAULT '{}')`

	insertRow = `INSERT INTO lockbench_lease (name) VALUES ($1) ON CONFLICT DO NOTHING`

	takeRow = `UPDATE lockbench_lease
SET owner = $2, fence = fence + 1, expires = clock_timestamp() + $3 * interval '1 microsecond'
WHERE name = $1 AND (owner = '' OR expires < clock_timestamp()) AND NOT $2 = ANY(ended)
RETURNING fence`

	extendRow = `UPDATE lockbench_lease
SET expires = clock_timestamp() + $4 * interval '1 microsecond'
WHERE name = $1 AND owner = $2 AND fence = $3 AND expires >= clock_timestamp()
RETURNING fence`

	freeRow = `UPDATE lockbench_lease
SET owner = ''
WHERE name = $1 AND owner = $2 AND fence = $3 AND expires >= clock_timestamp()
RETURNING fence`

	// endAttempt keeps the attempt from taking the row from now on: a takeRow that
	// waits for the row compares with what it finds then.
	endAttempt = `UPDATE lockbench_lease
SET ended = array_append(ended, $2)
WHERE name = $1 AND NOT $2 = ANY(ended)
RETURNING fence`

	cleanRow = `UPDATE lockbench_lease
SET owner = ''
WHERE name = $1 AND owner = $2 AND expires >= clock_timestamp()
RETURNING fence`

	readOwner = `SELECT owner FROM lockbench_lease WHERE name = $1 AND expires >= clock_timestamp()`
)

// leaseRow is postgres/lease-row: a row per key with its owner, the end of the
// lease, and a number that grows with every grant.
//
//	acquire  UPDATE the row to this attempt, its fence one more, if it is free or its lease is over
//	extend   UPDATE the end of the lease, if the row is still this attempt's with that fence, and the lease not over
//	release  UPDATE the row to free, on the same conditions
//	clean-up behind a pooler  UPDATE the row to refuse the attempt for ever, then to free
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's clock. Takeover: at the TTL's end, plus the
// rest of a poll.
//
// Guarantee: one holder until the TTL is over, and fencing tokens that grow,
// also behind a pooler of transactions. It fails when the holder goes on after
// that and nothing checks its token, when the server's clock is set forward,
// and, tokens included, when a commit is lost by a failover to a replica that
// had not received it. A primary that is cut off from its replica grants locks
// beside its successor; where commits wait for the replica, a client that gives
// up ends the wait, but not the commit.
//
// Source: the lock table of many schedulers, with a fence column and no
// client's clock.
type leaseRow struct{}

func (leaseRow) Info() impls.Info {
	return impls.Info{
		ID:       "postgres/lease-row",
		Backend:  "postgres",
		Summary:  "UPDATE of a row with owner, fence and expiry by the server's clock",
		Promise:  "one holder until its TTL is over, and growing fencing tokens, on one server that keeps its commits, or one replaced by another that has them all, whose clocks agree and are not set",
		Document: "the lock table of many schedulers, with a fence column and the server's clock alone",
		Bound:    impls.BoundTTL,
		Properties: []impls.Property{impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Blocking, impls.NonBlocking,
			impls.Expiry, impls.ReportsLost, impls.CleansUp, impls.Extends, impls.Once},
		Fencing:  true,
		Unfenced: []string{replicated},
		Polls:    true,

		Topologies: []string{single, replicated, pooled},
		RoundTrips: 2,
		Requests:   []string{"update"},
		Takeover:   func(ttl time.Duration) time.Duration { return ttl },
	}
}

func (leaseRow) CheckTTL(ttl time.Duration, _ impls.Limits) error {
	if ttl < time.Microsecond || ttl%time.Microsecond != 0 {
		return fmt.Errorf("postgres/lease-row cannot serve a TTL of %s: the server counts whole microseconds, at least 1µs", ttl)
	}
	return nil
}

// Prepare creates the table, and a row for each key: a key without a row looks
// busy for ever. Existing rows stay, for their fences.
func (leaseRow) Prepare(ctx context.Context, cfg impls.Config, keys []string) error {
	c, err := open(ctx, cfg)
	if err != nil {
		return fmt.Errorf("prepare postgres/lease-row: %w", err)
	}
	defer c.Close()
	if _, err := c.s.conn.Exec(ctx, createRows); err != nil {
		return fmt.Errorf("prepare postgres/lease-row: %w", err)
	}
	for _, key := range keys {
		if _, err := c.s.conn.Exec(ctx, insertRow, key); err != nil {
			return fmt.Errorf("prepare postgres/lease-row: key %s: %w", key, err)
		}
	}
	return nil
}

func (leaseRow) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := open(ctx, cfg)
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
	owner, ttl := a.String(), c.cfg.TTL.Microseconds()
	sent := impls.Monotonic(c.cfg.Clock)
	fence, err := c.update(ctx, "acquire", key, takeRow, key, owner, ttl)
	if errors.Is(err, impls.ErrLost) {
		return nil, impls.ErrBusy
	}
	if err != nil {
		return nil, err
	}
	return impls.NewLease(key, a, uint64(fence), sent, impls.Leaser{
		Clock: c.cfg.Clock,
		TTL:   c.cfg.TTL,
		Extend: func(ctx context.Context) error {
			return c.change(ctx, "extend", key, extendRow, key, owner, fence, ttl)
		},
		Free: func(ctx context.Context) error { return c.change(ctx, "release", key, freeRow, key, owner, fence) },
	}), nil
}

// Cleanup first makes sure that no earlier statement can still give the row to
// the attempt, then frees the row if it is the attempt's. Behind a pooler
// sessions cannot be ended, so the row itself refuses the attempt.
func (c *rowClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	if c.cfg.Topology == pooled {
		err := c.change(ctx, "clean up", key, endAttempt, key, a.String())
		if err != nil && !errors.Is(err, impls.ErrLost) { // lost: it had ended before
			return err
		}
	} else if err := c.settle(ctx, "clean up", key); err != nil {
		return err
	}
	return c.change(ctx, "clean up", key, cleanRow, key, a.String())
}

// change runs a statement that matches the row of a hold, again while the
// server refuses for the moment.
func (c *rowClient) change(ctx context.Context, doing, key, statement string, args ...any) error {
	for {
		_, err := c.update(ctx, doing, key, statement, args...)
		if !errors.Is(err, errRefused) || c.cfg.Clock.Sleep(ctx, c.cfg.Wait.Next()) != nil {
			return err
		}
	}
}

// update runs a statement that changes one row or none, and returns the row's
// fence; ErrLost if it changed none.
func (c *rowClient) update(ctx context.Context, doing, key, statement string, args ...any) (fence int64, err error) {
	if err := started(ctx, doing, key); err != nil {
		return 0, err
	}
	s, err := c.session(ctx)
	if err != nil {
		return 0, outcome(doing, key, err)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	err = s.conn.QueryRow(ctx, statement, args...).Scan(&fence)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, impls.ErrLost
	}
	if err != nil {
		return 0, c.fail(doing, key, err)
	}
	return fence, nil
}

// Left reads the owner of the row, unless its lease is over.
func (c *rowClient) Left(ctx context.Context, key string) ([]impls.Entry, error) {
	s, err := c.session(ctx)
	if err != nil {
		return nil, outcome("list", key, err)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	var owner string
	err = s.conn.QueryRow(ctx, readOwner, key).Scan(&owner)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, c.fail("list", key, err)
	}
	return impls.ParseEntries("", owner), nil
}
