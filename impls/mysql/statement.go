package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
)

// exec runs a statement on s that answers within cfg.Timeout. When ctx ends,
// the client does not interrupt the statement on the wire, which would break
// the connection and leave the statement running unseen; it makes the server
// end the statement, and the server answers.
//
// That is also cheaper: to watch a context the driver passes each statement to
// another goroutine and back.
func (c *client) exec(ctx context.Context, s *session, stmt string, args ...any) (sql.Result, error) {
	join := c.killWhenEnded(ctx, s, func() {})
	res, err := s.conn.ExecContext(context.WithoutCancel(ctx), stmt, args...)
	join()
	return res, err
}

// wait runs a statement that may wait for other clients, for as long as they
// hold, and returns a number or NULL. When ctx ends, the server has cfg.Timeout
// to end the statement; after that, or if the server cannot be reached, the
// client closes the connection.
func (c *client) wait(ctx context.Context, s *session, stmt string, args ...any) (n sql.NullInt64, err error) {
	sctx, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	join := c.killWhenEnded(ctx, s, cut)
	err = s.conn.QueryRowContext(sctx, stmt, args...).Scan(&n)
	join()
	if err != nil && sctx.Err() != nil {
		err = errors.Join(err, ctx.Err())
	}
	return n, err
}

// quick runs a statement that does not wait for other clients, on a connection
// with a long timeout.
func (c *client) quick(ctx context.Context, s *session, stmt string) error {
	ctx, cancel := c.shortly(ctx)
	defer cancel()
	_, err := s.conn.ExecContext(ctx, stmt)
	return err
}

// shortly is a context for one statement that does not wait for other clients,
// on a connection whose own timeout is for waiting. It does not end with ctx: a
// sent statement is waited for.
func (c *client) shortly(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Timeout)
}

// killWhenEnded makes the server end the statement on s when ctx ends, and
// calls late if the server cannot be reached, or has not answered after
// cfg.Timeout. The returned function cancels that, or waits until the kill was
// sent, so that it hits no later statement.
func (c *client) killWhenEnded(ctx context.Context, s *session, late func()) (join func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	done, cancelLate := make(chan struct{}), func() bool { return true }
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		if err := c.killStatement(ctx, s); err != nil {
			late()
			return
		}
		cancelLate = c.cfg.Clock.AfterFunc(c.cfg.Timeout, late)
	})
	return func() {
		if !stop() {
			<-done
			cancelLate()
		}
	}
}

// killStatement makes the server end the statement on s, on a connection of its
// own.
func (c *client) killStatement(ctx context.Context, s *session) error {
	ctx, cancel := c.shortly(ctx)
	defer cancel()
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer giveUp(conn)
	if several(c.cfg) {
		who, err := identify(ctx, conn)
		if err != nil {
			return err
		}
		if who.server != s.server { // the id belongs to another client's connection there
			return fmt.Errorf("connection %d is to a server that is no longer in use", s.id)
		}
	}
	_, err = conn.ExecContext(ctx, "KILL QUERY "+strconv.FormatUint(s.id, 10))
	return err
}
