package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockbench/lockbench/impls"
)

// client is one client's part of a database: one connection, on which it sends
// every statement of its locks.
type client struct {
	cfg  impls.Config
	last int        // index of the server that accepted writes last
	s    *session   // nil: none; session connects
	past []*session // given up in doubt, and perhaps still alive in the server
}

// session is one connection. Its number and the time of its start name it in
// the server.
type session struct {
	conn    *pgx.Conn
	server  int // index of its address
	pid     int32
	started time.Time
	// broken is closed when the connection is given up.
	broken chan struct{}
	// locks that the session may hold (advisory only).
	locks map[int64]*grant
}

// open connects a client.
func open(ctx context.Context, cfg impls.Config) (*client, error) {
	if len(cfg.Addresses) == 0 || len(cfg.Addresses) > 1 && cfg.Topology != replicated {
		return nil, fmt.Errorf("open postgres client: want the address of one server, got %d", len(cfg.Addresses))
	}
	c := &client{cfg: cfg}
	if _, err := c.session(ctx); err != nil {
		return nil, fmt.Errorf("open postgres client: %w", err)
	}
	return c, nil
}

// servers is how many servers a client may connect to.
func (c *client) servers() time.Duration { return time.Duration(len(c.cfg.Addresses)) }

// Close ends the connection and with it the locks that are bound to it.
func (c *client) Close() error {
	if c.s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.Timeout)
	defer cancel()
	err := c.s.conn.Close(ctx)
	c.s = nil
	return err
}

// session returns the client's connection, and connects if it has none. Its
// errors are ConnectErrors.
func (c *client) session(ctx context.Context) (*session, error) {
	if c.s != nil {
		return c.s, nil
	}
	conn, server, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, server: server, broken: make(chan struct{}), locks: map[int64]*grant{}}
	err = conn.QueryRow(ctx, "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()").Scan(&s.pid, &s.started)
	if err != nil {
		s.hangUp()
		return nil, &impls.ConnectError{Err: err}
	}
	c.s = s
	return s, nil
}

// hangUp closes the connection at once, without a message to the server.
func (s *session) hangUp() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.conn.Close(ctx)
}

// abandoned reports whether the session was given up.
func (s *session) abandoned() bool {
	select {
	case <-s.broken:
		return true
	default:
		return false
	}
}

// discard gives the connection up: a statement may still run on it, or it may
// hold locks.
func (c *client) discard() {
	if c.s == nil {
		return
	}
	c.s.hangUp()
	close(c.s.broken)
	c.past = append(c.past, c.s)
	c.s = nil
}

// fail names the outcome of err, and gives the connection up unless the server
// itself returned something definite.
func (c *client) fail(doing, key string, err error) error {
	out := outcome(doing, key, err)
	var pe *pgconn.PgError
	if errors.Is(out, impls.ErrUnknown) || !errors.As(err, &pe) || isCode(err, readOnlyError) || c.s != nil && c.s.conn.IsClosed() {
		c.discard()
	}
	return out
}

// within is ctx for one statement that waits for no lock.
func (c *client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.cfg.Timeout)
}

// errPooled: a client behind a pooler cannot name the server connection on which
// a statement of its was run, or will be run.
var errPooled = errors.New("a statement of a connection that was given up may still be run by the pooler")

// settle makes sure that no session that was given up is left in the server, so
// that nothing sent on it can have an effect any more. Until then everything is
// open, so its errors are ErrUnknown. Behind a pooler it stays open.
func (c *client) settle(ctx context.Context, doing, key string) error {
	for len(c.past) > 0 {
		dead := c.past[0]
		s, err := c.session(ctx)
		switch {
		case err != nil:
		case c.cfg.Topology == pooled:
			err = errPooled
		case s.server == dead.server:
			err = c.terminate(ctx, s, dead)
		default:
			// A session of a server that was the primary before cannot change
			// anything at the present one.
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w: %w", doing, key, impls.ErrUnknown, err)
		}
		c.past = c.past[1:]
	}
	return nil
}

// terminate ends the session dead by statements on s, and returns when the
// server has it no more.
func (c *client) terminate(ctx context.Context, s, dead *session) error {
	for {
		ctx, cancel := c.within(ctx)
		var left int
		err := s.conn.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2`,
			dead.pid, dead.started).Scan(&left)
		cancel()
		if err != nil {
			return c.fail("end", fmt.Sprintf("session %d", dead.pid), err)
		}
		if left == 0 {
			return nil
		}
		if err := c.cfg.Clock.Sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}
