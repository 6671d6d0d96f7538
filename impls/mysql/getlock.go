package mysql

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/impls"
)

const (
	takeName   = "SELECT GET_LOCK(?, ?)"  // 1 ours, 0 not in time, NULL an error
	freeName   = "SELECT RELEASE_LOCK(?)" // 1 freed, 0 another's, NULL nobody's
	whoHasName = "SELECT IS_USED_LOCK(?)" // the connection's id, NULL nobody's
	slice      = time.Second              // how long one GET_LOCK waits, at most
	maxName    = 64                       // bytes that MySQL allows a lock's name
)

// getLock is mysql/get-lock: a named lock of the server, held by a connection.
//
//	acquire  GET_LOCK(key, 1 s); again until it answers 1
//	release  RELEASE_LOCK(key)
//
// Round trips: 1 to acquire, 1 to release; a waiter, whom the server wakes, adds
// 1 per second.
// Bound: the connection, on which all of a client's statements go; there is no
// lease, and a TTL means nothing. Takeover: as soon as the server sees the
// connection end, which a host that vanishes without a word may put off for as
// long as TCP does.
//
// It promises one holder as long as its connection lives; a holder that is
// merely silent keeps the lock, and everybody waits. It fails when the server
// ends the connection (killed, idle for wait_timeout, restarted) or a proxy
// does: nothing reads from an idle connection, so its holder is told when it
// next uses it, at its release, and there is no token to fence with. It is not
// replicated, and Galera refuses it.
//
// Source: the locking functions of the MySQL manual.
type getLock struct{}

func (getLock) Info() impls.Info {
	return impls.Info{
		ID:       "mysql/get-lock",
		Backend:  "mysql",
		Summary:  "GET_LOCK and RELEASE_LOCK on a connection of the client's own; waiters are woken, and ask again every second",
		Promise:  "one holder as long as its connection to the one server lives; not replicated",
		Document: "the locking functions of the MySQL manual",
		Bound:    impls.BoundConnection,

		Topologies: []string{"single"},
		RoundTrips: 2,
		Requests:   []string{"com_select", "com_kill"},
		// The server ends an idle connection as soon as it sees its end,
		// which does not depend on the TTL. A second is ample.
		Takeover: func(time.Duration) time.Duration { return time.Second },
	}
}

// CheckTTL accepts every TTL, since none has a meaning here.
func (getLock) CheckTTL(time.Duration, impls.Limits) error { return nil }

// Prepare sees that the server can be reached; names need nothing.
func (getLock) Prepare(ctx context.Context, cfg impls.Config, _ []string) error {
	c, err := open(ctx, cfg, options{})
	if err != nil {
		return fmt.Errorf("prepare mysql/get-lock: %w", err)
	}
	return c.Close()
}

func (getLock) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := open(ctx, cfg, options{wait: slice})
	if err != nil {
		return nil, err
	}
	return &nameClient{client: c}, nil
}

// grant is what a session may hold under a name.
type grant struct {
	attempt impls.Attempt
	seen    bool // the server said that the session, given up, had it
}

type nameClient struct{ *client }

func (c *nameClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	for {
		h, err := c.ask(ctx, key, a, slice)
		switch {
		case errors.Is(err, errRefused):
			err = c.cfg.Clock.Sleep(ctx, c.cfg.Wait.Next())
		case errors.Is(err, impls.ErrBusy):
			err = ctx.Err()
		default:
			return h, err
		}
		if err != nil {
			return nil, fmt.Errorf("acquire %s: gave up waiting: %w: %w", key, impls.ErrFailed, err)
		}
	}
}

func (c *nameClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return c.ask(ctx, key, a, 0)
}

// ask sends one GET_LOCK that waits at most wait: held, or ErrBusy. If ctx ends
// meanwhile the server is asked to end the statement, see exec, so that no
// waiter is left that may yet be granted the lock.
func (c *nameClient) ask(ctx context.Context, key string, a impls.Attempt, wait time.Duration) (impls.Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("acquire %s: %w", key, impls.NotSent(err))
	}
	s, err := c.session(ctx)
	if err != nil {
		return nil, outcome("acquire", key, err)
	}
	name := lockName(key)
	if _, ours := s.locks[name]; ours {
		// The server would grant it again to the same connection.
		if wait == 0 {
			return nil, impls.ErrBusy
		}
		return nil, fmt.Errorf("acquire %s: %w: this client holds it already; release it first", key, impls.ErrFailed)
	}
	s.locks[name] = &grant{attempt: a}

	got, err := c.number(ctx, s, takeName, name, int64(wait/time.Second))
	switch {
	case err == nil && got.Valid && got.Int64 == 1:
		return &nameHold{c: c, s: s, key: key, name: name, attempt: a}, nil
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

// queryInterrupted is the number of the server's error for a statement that
// was killed.
const queryInterrupted = 1317

// interrupted settles a GET_LOCK that was answered neither yes nor no: NULL, or
// that it was killed, which may have come after the grant. Releasing the name
// makes it sure either way.
func (c *nameClient) interrupted(ctx context.Context, s *session, key, name string, err error) error {
	if _, ferr := c.number(context.WithoutCancel(ctx), s, freeName, name); ferr != nil {
		c.discard()
		return fmt.Errorf("acquire %s: %w: the wait was ended, and then: %w", key, impls.ErrUnknown, ferr)
	}
	delete(s.locks, name)
	if cerr := ctx.Err(); cerr != nil {
		return fmt.Errorf("acquire %s: gave up waiting: %w: %w", key, impls.ErrFailed, cerr)
	}
	if err == nil {
		err = errors.New("GET_LOCK answered NULL")
	}
	return fmt.Errorf("acquire %s: %w: %w", key, impls.ErrFailed, err)
}

// Cleanup frees the name if the attempt has it on the present connection. If
// the attempt was made on one that was given up, it kills that, and answers
// when the server has it no more.
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
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("clean up %s: %w", key, impls.NotSent(err))
	}
	s, err := c.session(ctx)
	if err != nil {
		return outcome("clean up", key, err)
	}
	holder, err := c.number(ctx, s, whoHasName, name)
	if err != nil {
		c.fail("clean up", key, err)
		return fmt.Errorf("clean up %s: %w: %w", key, impls.ErrUnknown, err)
	}
	if holder.Valid && uint64(holder.Int64) == dead.id {
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

// free releases name on s, the present connection.
func (c *nameClient) free(ctx context.Context, doing string, s *session, key, name string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", doing, key, impls.NotSent(err))
	}
	freed, err := c.number(context.WithoutCancel(ctx), s, freeName, name)
	if err != nil {
		return c.fail(doing, key, err)
	}
	delete(s.locks, name)
	if freed.Valid && freed.Int64 == 1 {
		return nil
	}
	return impls.ErrLost
}

// lockName is key as the name of a lock. Names have few bytes and do not know
// upper from lower case, so that a key that is long, or not plain, is hashed.
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

type nameHold struct {
	c       *nameClient
	s       *session
	key     string
	name    string
	attempt impls.Attempt
	spent   bool // a release has said definitely that it is over
}

func (h *nameHold) Key() string            { return h.key }
func (h *nameHold) Attempt() impls.Attempt { return h.attempt }
func (h *nameHold) Fence() uint64          { return 0 }

// LeaseEnd is zero: there is no lease.
func (h *nameHold) LeaseEnd() time.Time { return time.Time{} }

// Lost is closed when the connection was found broken, by whatever used it.
// It cannot tell of a connection that ended while nobody used it.
func (h *nameHold) Lost() <-chan struct{} { return h.s.broken }

// Extend is not supported: there is no lease.
func (h *nameHold) Extend(context.Context) error { return errors.ErrUnsupported }

func (h *nameHold) Release(ctx context.Context) error {
	if h.spent {
		return impls.ErrLost
	}
	var err error
	if h.s == h.c.s {
		err = h.c.free(ctx, "release", h.s, h.key, h.name)
	} else if err = h.c.settle(ctx, "release", h.key); err == nil {
		// The connection was given up with the lock on it, and is gone now.
		err = impls.ErrLost
	}
	h.spent = impls.Definite(err)
	return err
}
