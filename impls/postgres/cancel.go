package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// canceller has the server end a statement whose context is over, so that no
// statement goes on unseen: a waiter that was left in the server could still be
// granted the lock. The statement returns an error or, if it was faster, its
// result. If it returns neither within limit, the connection breaks.
//
// pgx brings a handler like this one, which sleeps for 100 ms after each
// cancel request so that it does not hit a later statement. The server signals the
// session before it closes the connection of the request, and a session ignores
// the signal while it reads the next statement, so no wait is needed.
type canceller struct {
	conn  *pgconn.PgConn
	limit time.Duration
	sent  chan struct{}
}

func (c *canceller) HandleCancel(context.Context) {
	c.sent = make(chan struct{})
	deadline := time.Now().Add(c.limit)
	_ = c.conn.Conn().SetDeadline(deadline)
	go func() {
		defer close(c.sent)
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		// Without a cancel request the deadline ends the wait.
		_ = c.conn.CancelRequest(ctx)
	}()
}

func (c *canceller) HandleUnwatchAfterCancel() {
	<-c.sent
	_ = c.conn.Conn().SetDeadline(time.Time{})
}
