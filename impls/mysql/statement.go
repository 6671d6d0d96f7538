package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
)

// exec runs a statement on s, the client's connection, which answers within
// cfg.Timeout. When ctx ends meanwhile the statement is not cut off on the
// wire, which would break the connection and leave the statement running
// unseen; the server is asked to end it, and answers.
//
// It is also the cheaper way: the driver watches a context by handing each
// statement to another goroutine and back.
func (c *client) exec(ctx context.Context, s *session, stmt string, args ...any) (sql.Result, error) {
	join := c.killWhenEnded(ctx, s, func() {})
	res, err := s.conn.ExecContext(context.WithoutCancel(ctx), stmt, args...)
	join()
	return res, err
}

// wait runs a statement that may wait for others, as long as they take, and
// answers one number or NULL.
// When ctx ends the server has cfg.Timeout to be told and to answer; after
// that, or if it cannot be told, the statement is cut off on the wire.
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

// quick runs a statement that waits for nobody, on a connection of those that
// do.
func (c *client) quick(ctx context.Context, s *session, stmt string) error {
	ctx, cancel := c.shortly(ctx)
	defer cancel()
	_, err := s.conn.ExecContext(ctx, stmt)
	return err
}

// shortly is ctx for one statement that waits for nobody, on a connection whose
// own limit is meant for those that do. It does not end with ctx: a statement
// that was sent is waited for.
func (c *client) shortly(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Timeout)
}

// killWhenEnded has the server end the statement that runs on s once ctx ends,
// and calls late if the server cannot be told, or has not answered cfg.Timeout
// later. The function that it returns calls that off, or waits until the
// server was told, so that the kill hits no later statement.
func (c *client) killWhenEnded(ctx context.Context, s *session, late func()) (join func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	done, enough := make(chan struct{}), func() bool { return true }
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		if err := c.killStatement(ctx, s); err != nil {
			late()
			return
		}
		enough = c.cfg.Clock.AfterFunc(c.cfg.Timeout, late)
	})
	return func() {
		if !stop() {
			<-done
			enough()
		}
	}
}

// killStatement asks the server, on a connection for that alone, to end what
// runs on s.
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
		if who.server != s.server { // where the number is another's
			return fmt.Errorf("connection %d is to a server that serves no longer", s.id)
		}
	}
	_, err = conn.ExecContext(ctx, "KILL QUERY "+strconv.FormatUint(s.id, 10))
	return err
}
