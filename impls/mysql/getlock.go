package mysql

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/impls"
)

const (
	takeName   = "SELECT GET_LOCK(?, ?)"  // 1 granted, 0 timed out, NULL an error
	freeName   = "SELECT RELEASE_LOCK(?)" // 1 freed, 0 another connection's, NULL free
	whoHasName = "SELECT IS_USED_LOCK(?)" // the connection's id, NULL free
	maxName    = 64                       // bytes that MySQL allows for a lock's name

	// takeThere is takeName for a server that may be replaced: -1, and no lock,
	// if it takes no writes any more, since it would still grant names.
	takeThere = "SELECT IF(@@global.read_only, -1, GET_LOCK(?, ?))"

	// nameWait is how long one GET_LOCK waits, at most. The next one starts at
	// the end of the queue.
	nameWait = 10 * time.Second
)

// getLock is mysql/get-lock: a named lock of the server, held by a connection.
//
// Document: the locking functions of the MySQL manual.
//
//	acquire  GET_LOCK(key, 10 s); again until it returns 1
//	release  RELEASE_LOCK(key)
//
// Round trips: 1 to acquire, 1 to release; a waiter, woken by the server, adds
// 1 per 10 s.
// Bound: the connection, which has all of a client's statements; there is no
// lease, and the TTL has no meaning. Takeover: when the server detects the end
// of the connection; after the silent loss of a host only when TCP does.
// Guarantee: one holder while its connection lives; a silent holder keeps the
// lock.
// Failure: the server ends the connection (killed, idle for wait_timeout,
// restarted), or a proxy does: the holder detects it only at its next request,
// its release, and there is no fencing token. The lock is not replicated: after
// a failover the new server grants it to another client, while the old one, if
// alive, still has the holder's. Each server of a Galera cluster grants it by
// itself, and so to one client each.
type getLock struct{ anyTTL }

func (getLock) Info() impls.Info {
	return impls.Info{
		ID:       "mysql/get-lock",
		Backend:  "mysql",
		Summary:  "GET_LOCK and RELEASE_LOCK on a connection of the client's own; waiters queue in the server, and ask again every 10 s",
		Promise:  "one holder while its connection to the one server lives; it is not replicated, and no failover keeps it",
		Document: "the locking functions of the MySQL manual",
		Bound:    impls.BoundConnection,
		Properties: []impls.Property{impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Blocking, impls.NonBlocking,
			impls.Ordered, impls.ReportsLost, impls.CleansUp, impls.Once},

		Topologies:      append(anywhere(), galera),
		GrantsPerServer: []string{galera},
		RoundTrips:      2,
		Requests:        []string{"com_select", "com_kill"},
		Takeover:        atOnce,
	}
}

// Prepare checks that the server is reachable; names need no preparation.
func (getLock) Prepare(ctx context.Context, cfg impls.Config, _ []string) error {
	c, err := open(ctx, cfg, options{})
	if err != nil {
		return fmt.Errorf("prepare mysql/get-lock: %w", err)
	}
	return c.Close()
}

func (getLock) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := open(ctx, cfg, options{wait: nameWait})
	if err != nil {
		return nil, err
	}
	return &nameClient{client: c}, nil
}

// grant is what a session may hold under a name.
type grant struct {
	attempt impls.Attempt
	seen    bool // the server reported that the abandoned session had it
}

type nameClient struct{ *client }

func (c *nameClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return retryUntilAcquired(ctx, c.cfg, key, func() (impls.Hold, error) {
		c.cfg.Reach(ctx, impls.StepWaiting)
		return c.ask(ctx, key, a, nameWait)
	})
}

func (c *nameClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return c.ask(ctx, key, a, 0)
}

// ask sends one GET_LOCK that waits at most wait: held, or ErrBusy. If ctx ends
// meanwhile the server ends the statement, see wait, so that no waiter remains
// that could be granted the lock later.
func (c *nameClient) ask(ctx context.Context, key string, a impls.Attempt, wait time.Duration) (impls.Hold, error) {
	if err := started(ctx, "acquire", key); err != nil {
		return nil, err
	}
	s, err := c.session(ctx)
	if err != nil {
		return nil, outcome("acquire", key, err)
	}
	name := lockName(key)
	if _, held := s.locks[name]; held {
		// The server would grant it to the same connection again.
		if wait == 0 {
			return nil, impls.ErrBusy
		}
		return nil, fmt.Errorf("acquire %s: %w: this client holds it already; release it first", key, impls.ErrFailed)
	}
	s.locks[name] = &grant{attempt: a}

	take := takeName
	if c.cfg.Topology == replicated {
		take = takeThere
	}
	got, err := c.wait(ctx, s, take, name, int64(wait/time.Second))
	if err == nil && got.Int64 < 0 {
		err = errReadOnly
	}
	switch {
	case err == nil && got.Valid && got.Int64 == 1:
		return newHold(key, a, s.broken, func(ctx context.Context) error { return c.release(ctx, s, key, name) }), nil
	case err == nil && got.Valid && got.Int64 == 0:
		delete(s.locks, name)
		return nil, impls.ErrBusy
	case err == nil || isNumber(err, queryInterrupted):
		return nil, c.interrupted(ctx, s, key, name, err)
	default:
		err = c.fail("acquire", key, err)
		if !errors.Is(err, impls.ErrUnknown) {
			delete(s.locks, name)
		}
		return nil, err
	}
}

// interrupted settles a GET_LOCK that returned NULL or was killed, perhaps
// after the grant: it releases the name, which makes the outcome definite.
func (c *nameClient) interrupted(ctx context.Context, s *session, key, name string, err error) error {
	if _, ferr := c.freed(ctx, s, name); ferr != nil {
		c.discard()
		return fmt.Errorf("acquire %s: %w: the wait was ended, and then: %w", key, impls.ErrUnknown, ferr)
	}
	delete(s.locks, name)
	if cerr := ctx.Err(); cerr != nil {
		return impls.GaveUp(key, cerr)
	}
	if err == nil {
		err = errors.New("GET_LOCK returned NULL")
	}
	return fmt.Errorf("acquire %s: %w: %w", key, impls.ErrFailed, err)
}

// Cleanup frees the name if the attempt has it on the current connection. If
// the attempt was made on an abandoned one, it kills that, and returns when the
// server has ended it.
func (c *nameClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	name := lockName(key)
	for _, dead := range c.past {
		if g := dead.locks[name]; g != nil && g.attempt == a {
			return c.cleanupPast(ctx, dead, key, name, g)
		}
	}
	if c.s != nil {
		if g := c.s.locks[name]; g != nil && g.attempt == a {
			return c.free(ctx, "clean up", c.s, key, name)
		}
	}
	return impls.ErrLost
}

func (c *nameClient) cleanupPast(ctx context.Context, dead *session, key, name string, g *grant) error {
	if err := started(ctx, "clean up", key); err != nil {
		return err
	}
	s, err := c.session(ctx)
	if err != nil {
		return outcome("clean up", key, err)
	}
	holder, err := c.wait(ctx, s, whoHasName, name)
	if err != nil {
		c.fail("clean up", key, err)
		return fmt.Errorf("clean up %s: %w: %w", key, impls.ErrUnknown, err)
	}
	if holder.Valid && uint64(holder.Int64) == dead.id && s.server == dead.server {
		g.seen = true
	}
	if err := c.settle(ctx, "clean up", key); err != nil {
		return err
	}
	if g.seen {
		return nil
	}
	return impls.ErrLost
}

// free releases name on s, the current connection.
func (c *nameClient) free(ctx context.Context, doing string, s *session, key, name string) error {
	if err := started(ctx, doing, key); err != nil {
		return err
	}
	freed, err := c.freed(ctx, s, name)
	if err != nil {
		return c.fail(doing, key, err)
	}
	delete(s.locks, name)
	if freed.Valid && freed.Int64 == 1 {
		return nil
	}
	return impls.ErrLost
}

// freed sends the release of name on s.
func (c *nameClient) freed(ctx context.Context, s *session, name string) (n sql.NullInt64, err error) {
	ctx, cancel := c.shortly(ctx)
	defer cancel()
	err = s.conn.QueryRowContext(ctx, freeName, name).Scan(&n)
	return n, err
}

// release ends the hold of name that began on s.
func (c *nameClient) release(ctx context.Context, s *session, key, name string) error {
	if !s.abandoned() {
		err := c.free(ctx, "release", s, key, name)
		if !s.abandoned() || !errors.Is(err, impls.ErrFailed) {
			return err
		}
		// Nothing more could be sent.
	}
	// The connection was abandoned with the lock; the lock ends with it.
	if err := c.settle(ctx, "release", key); err != nil {
		return err
	}
	return impls.ErrLost
}

// lockName is the lock's name for a key. Names have at most 64 bytes and ignore
// case, so a long key, or one with other characters, is hashed.
func lockName(key string) string {
	plain := len(key) > 0 && len(key) <= maxName
	for i := 0; plain && i < len(key); i++ {
		b := key[i]
		plain = 'a' <= b && b <= 'z' || '0' <= b && b <= '9' || b == '-' || b == '_' || b == '.' || b == ':' || b == '/'
	}
	if plain {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "#" + hex.EncodeToString(sum[:20])
}
