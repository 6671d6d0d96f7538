package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/impls"
)

const (
	takeLock = "SELECT true FROM (SELECT pg_advisory_lock($1)) AS granted"
	tryLock  = "SELECT pg_try_advisory_lock($1)"
	freeLock = "SELECT pg_advisory_unlock($1)" // false: not this session's

	// lockWait limits one wait in the server. Asking again means standing at the
	// end of the queue again.
	lockWait = 10 * time.Second
)

// advisory is postgres/advisory: a session-level advisory lock of the server.
//
//	acquire  pg_advisory_lock(hash of the key); again after 10 s
//	release  pg_advisory_unlock(hash of the key)
//
// Round trips: 1 to acquire, 1 to release; a waiter, which the server wakes,
// adds 1 per 10 s.
// Bound: the connection, on which all of a client's statements go; a TTL means
// nothing. Takeover: as soon as the server sees the end of the connection.
//
// Guarantee: one holder as long as its connection lives; a silent holder keeps
// the lock. It fails when the server or a proxy ends the connection: the holder
// learns it at its next statement, and there is no token to fence with. It is
// not replicated: after a failover another client gets the lock at the new
// primary. Behind a pooler that gives each transaction another server connection
// (PgBouncer's transaction mode) it is no lock at all: the session that holds it
// is shared by clients, so a second client is granted it again, and its owner's
// release may reach a session that does not hold it.
//
// Source: the advisory locks of the PostgreSQL manual.
type advisory struct{}

func (advisory) Info() impls.Info {
	return impls.Info{
		ID:       "postgres/advisory",
		Backend:  "postgres",
		Summary:  "pg_advisory_lock and pg_advisory_unlock on a connection of the client's own; waiters queue in the server, and ask again every 10 s",
		Promise:  "one holder as long as its own connection to the one server lives; it is not replicated, and no pooler of transactions may stand between",
		Document: "the advisory locks of the PostgreSQL manual",
		Bound:    impls.BoundConnection,
		Properties: []impls.Property{impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Blocking, impls.NonBlocking,
			impls.Ordered, impls.ReportsLost, impls.CleansUp, impls.Once},

		Topologies:      []string{single, replicated, pooled},
		GrantsPerServer: []string{pooled},
		RoundTrips:      2,
		Requests:        []string{"select"},
		Takeover:        onDisconnect,
	}
}

// CheckTTL accepts every TTL: it means nothing here.
func (advisory) CheckTTL(time.Duration, impls.Limits) error { return nil }

// Prepare checks that the server can be reached; the locks need no preparation.
func (advisory) Prepare(ctx context.Context, cfg impls.Config, _ []string) error {
	c, err := open(ctx, cfg)
	if err != nil {
		return fmt.Errorf("prepare postgres/advisory: %w", err)
	}
	return c.Close()
}

func (advisory) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &advisoryClient{client: c}, nil
}

// grant is what a session may hold.
type grant struct {
	attempt impls.Attempt
	seen    bool // the server reported that the session, given up, held it
}

// errOtherSession: behind a pooler a release may reach a session other than the
// one that was granted the lock.
var errOtherSession = errors.New("another session of the pooler may hold the lock")

type advisoryClient struct{ *client }

func (c *advisoryClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	for {
		c.cfg.Reach(ctx, impls.StepWaiting)
		h, err := c.wait(ctx, key, a)
		switch {
		case errors.Is(err, errRefused):
			err = c.cfg.Clock.Sleep(ctx, c.cfg.Wait.Next())
		case errors.Is(err, impls.ErrBusy):
			err = ctx.Err()
		default:
			return h, err
		}
		if err != nil {
			return nil, impls.GaveUp(key, err)
		}
	}
}

// wait asks for the lock once, for at most lockWait.
func (c *advisoryClient) wait(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	limited, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	h, err := c.ask(limited, takeLock, key, a)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && errors.Is(err, impls.ErrFailed) {
		return nil, impls.ErrBusy
	}
	return h, err
}

func (c *advisoryClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	return c.ask(ctx, tryLock, key, a)
}

// ask sends one statement that takes the lock: held, or ErrBusy.
func (c *advisoryClient) ask(ctx context.Context, statement, key string, a impls.Attempt) (impls.Hold, error) {
	if err := started(ctx, "acquire", key); err != nil {
		return nil, err
	}
	s, err := c.session(ctx)
	if err != nil {
		return nil, outcome("acquire", key, err)
	}
	id := lockID(key)
	if _, ours := s.locks[id]; ours {
		// The server would grant it again to the same session.
		if statement == tryLock {
			return nil, impls.ErrBusy
		}
		return nil, fmt.Errorf("acquire %s: %w: this client holds it already; release it first", key, impls.ErrFailed)
	}
	s.locks[id] = &grant{attempt: a}
	var granted bool
	err = s.conn.QueryRow(ctx, statement, id).Scan(&granted)
	switch {
	case err == nil && granted:
		return newSessionHold(key, a, s.broken, func(ctx context.Context) error { return c.release(ctx, s, key, id) }), nil
	case err == nil:
		delete(s.locks, id)
		return nil, impls.ErrBusy
	case isCode(err, queryCanceled):
		return nil, c.cancelled(ctx, s, key, id, err)
	}
	err = c.fail("acquire", key, err)
	if !errors.Is(err, impls.ErrUnknown) {
		delete(s.locks, id)
	}
	return nil, err
}

// cancelled settles a statement that was cancelled, perhaps just after the
// grant, which a rollback does not take back: a release makes it certain.
func (c *advisoryClient) cancelled(ctx context.Context, s *session, key string, id int64, err error) error {
	freed, ferr := c.unlock(ctx, s, id)
	if ferr == nil && !freed && c.cfg.Topology == pooled {
		ferr = errOtherSession
	}
	if ferr != nil {
		c.discard()
		return fmt.Errorf("acquire %s: %w: the wait was cancelled, and then: %w", key, impls.ErrUnknown, ferr)
	}
	delete(s.locks, id)
	if cerr := ctx.Err(); cerr != nil {
		return impls.GaveUp(key, cerr)
	}
	return fmt.Errorf("acquire %s: %w: %w", key, impls.ErrFailed, err)
}

// unlock sends the release on s, also when ctx is over.
func (c *advisoryClient) unlock(ctx context.Context, s *session, id int64) (freed bool, err error) {
	ctx, cancel := c.within(context.WithoutCancel(ctx))
	defer cancel()
	err = s.conn.QueryRow(ctx, freeLock, id).Scan(&freed)
	return freed, err
}

// release ends the hold that began on s.
func (c *advisoryClient) release(ctx context.Context, s *session, key string, id int64) error {
	if !s.abandoned() {
		err := c.free(ctx, "release", s, key, id)
		if !s.abandoned() || !errors.Is(err, impls.ErrFailed) {
			return err
		}
	}
	// The session was given up, and the lock ends with it.
	if err := c.settle(ctx, "release", key); err != nil {
		return err
	}
	return impls.ErrLost
}

func (c *advisoryClient) free(ctx context.Context, doing string, s *session, key string, id int64) error {
	if err := started(ctx, doing, key); err != nil {
		return err
	}
	freed, err := c.unlock(ctx, s, id)
	if err != nil {
		return c.fail(doing, key, err)
	}
	if !freed && c.cfg.Topology == pooled {
		return fmt.Errorf("%s %s: %w: %w", doing, key, impls.ErrUnknown, errOtherSession)
	}
	delete(s.locks, id)
	if !freed {
		return impls.ErrLost
	}
	return nil
}

// Cleanup frees the lock if the attempt holds it on the present session. If the
// attempt was made on one that was given up, it ends that session.
func (c *advisoryClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	id := lockID(key)
	for _, dead := range c.past {
		if g := dead.locks[id]; g != nil && g.attempt == a {
			return c.cleanupPast(ctx, dead, key, id, g)
		}
	}
	if c.s != nil {
		if g := c.s.locks[id]; g != nil && g.attempt == a {
			return c.free(ctx, "clean up", c.s, key, id)
		}
	}
	return impls.ErrLost
}

// holdsLock finds a session that holds the lock. The two halves of the number
// are in two columns, and objsubid is 1 for a key of 64 bits.
const holdsLock = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = $1
AND ((classid::bigint << 32) | objid::bigint) = $2 AND objsubid = 1`

func (c *advisoryClient) cleanupPast(ctx context.Context, dead *session, key string, id int64, g *grant) error {
	if err := started(ctx, "clean up", key); err != nil {
		return err
	}
	s, err := c.session(ctx)
	if err != nil {
		return outcome("clean up", key, err)
	}
	if s.server == dead.server && !g.seen {
		asking, cancel := c.within(ctx)
		var holds int
		err := s.conn.QueryRow(asking, holdsLock, dead.pid, id).Scan(&holds)
		cancel()
		if err != nil {
			c.fail("clean up", key, err)
			return fmt.Errorf("clean up %s: %w: %w", key, impls.ErrUnknown, err)
		}
		g.seen = holds > 0
	}
	if err := c.settle(ctx, "clean up", key); err != nil {
		return err
	}
	if g.seen {
		return nil
	}
	return impls.ErrLost
}

// lockID is key as the number of a lock.
func lockID(key string) int64 {
	sum := sha256.Sum256([]byte(key))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// sessionHold is a lock that ends with its connection.
type sessionHold struct {
	impls.Grant
	broken <-chan struct{}
}

func newSessionHold(key string, a impls.Attempt, broken <-chan struct{}, free func(context.Context) error) *sessionHold {
	return &sessionHold{Grant: impls.NewGrant(key, a, 0, free), broken: broken}
}

// LeaseEnd is the zero time: the bound is a connection.
func (*sessionHold) LeaseEnd() time.Time { return time.Time{} }

// Lost is closed when a statement found the connection broken; nothing reads
// from an idle one.
func (h *sessionHold) Lost() <-chan struct{} { return h.broken }
