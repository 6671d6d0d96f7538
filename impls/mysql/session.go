package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/lockbench/lockbench/impls"
)

// Recipes lists the recipes of this package.
func Recipes() []impls.Recipe { return []impls.Recipe{leaseRow{}, getLock{}} }

// options of a client's driver, apart from cfg.
type options struct {
	// wait is how long a statement may lawfully take to answer, on top of
	// cfg.Timeout.
	wait time.Duration
	// foundRows counts the rows that matched instead of those that changed.
	foundRows bool
}

// client is one client's part of a database: one connection, on which every
// statement of its locks is sent, so that database/sql neither picks another
// one nor sends anything twice.
type client struct {
	cfg  impls.Config
	db   *sql.DB
	s    *session   // nil: none, connect when it is needed
	past []*session // given up in doubt, and not yet known to be gone
}

// session is one connection, by the names that the server has for it.
type session struct {
	conn *sql.Conn
	id   uint64
	// host is the client's end as the server sees it. With the id it names the
	// connection even after a restart, when the ids begin again.
	host string
	// broken is closed when the connection was found broken or given up.
	broken chan struct{}
	// locks that the connection may hold, by name (get-lock only).
	locks map[string]*grant
}

func open(ctx context.Context, cfg impls.Config, opt options) (*client, error) {
	if len(cfg.Addresses) != 1 {
		return nil, fmt.Errorf("open mysql client: want the address of one server, got %d", len(cfg.Addresses))
	}
	conf := mysql.NewConfig()
	conf.Net = "tcp"
	conf.Addr = cfg.Addresses[0]
	conf.User, conf.Passwd, conf.DBName = cfg.Account.User, cfg.Account.Password, cfg.Account.Database
	conf.DialFunc = cfg.Dial
	conf.Logger = &mysql.NopLogger{} // what it would print is in the errors
	conf.Timeout = cfg.Timeout
	conf.WriteTimeout = cfg.Timeout
	conf.ReadTimeout = cfg.Timeout + opt.wait
	conf.InterpolateParams = true // one round trip for a statement, not two
	conf.ClientFoundRows = opt.foundRows
	conf.Params = map[string]string{
		"autocommit": "1",
		// 24 days, the most that every platform takes: a client that holds a
		// lock in silence must not be cut off for it.
		"wait_timeout": "2147483",
		// The server must give up waiting for a row before the client gives
		// up on the server, or the statement would be carried out unseen.
		"innodb_lock_wait_timeout": strconv.Itoa(max(1, int(cfg.Timeout/time.Second)-1)),
	}
	connector, err := mysql.NewConnector(conf)
	if err != nil {
		return nil, fmt.Errorf("open mysql client: %w", err)
	}
	c := &client{cfg: cfg, db: sql.OpenDB(connector)}
	c.db.SetMaxOpenConns(2)    // the client's own, and one to kill with
	c.db.SetMaxIdleConns(-1)   // what is let go is closed
	c.db.SetConnMaxLifetime(0) // and nothing ends by its age
	if _, err := c.session(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("open mysql client: %w", err)
	}
	return c, nil
}

// Close frees the connection and with it, if the server sees it, the locks
// that are bound to it.
func (c *client) Close() error {
	if c.s != nil {
		c.s.conn.Close()
		c.s = nil
	}
	return c.db.Close()
}

// session returns the client's connection, and connects if it has none. Its
// errors are ConnectErrors.
func (c *client) session(ctx context.Context) (*session, error) {
	if c.s != nil {
		return c.s, nil
	}
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return nil, &impls.ConnectError{Err: err}
	}
	s := &session{conn: conn, broken: make(chan struct{}), locks: make(map[string]*grant)}
	err = conn.QueryRowContext(ctx,
		"SELECT id, host FROM information_schema.processlist WHERE id = CONNECTION_ID()").Scan(&s.id, &s.host)
	if err != nil {
		giveUp(conn)
		return nil, &impls.ConnectError{Err: err}
	}
	c.s = s
	return s, nil
}

// discard gives the connection up because something on it is in doubt: a
// statement may still be on its way or running.
func (c *client) discard() {
	if c.s == nil {
		return
	}
	giveUp(c.s.conn)
	close(c.s.broken)
	c.past = append(c.past, c.s)
	c.s = nil
}

// exec runs a statement on s, the client's connection. When ctx ends meanwhile
// the statement is not cut off on the wire, which would break the connection
// and leave the statement running unseen; the server is asked to end it, and
// answers. That takes cfg.Timeout at most.
//
// It is also the cheaper way: the driver watches a context by handing each
// statement to another goroutine and back.
func (c *client) exec(ctx context.Context, s *session, stmt string, args ...any) (sql.Result, error) {
	join := c.killWhenEnded(ctx, s)
	res, err := s.conn.ExecContext(context.WithoutCancel(ctx), stmt, args...)
	join()
	return res, err
}

// number is exec for a statement that answers one number or NULL.
func (c *client) number(ctx context.Context, s *session, stmt string, args ...any) (sql.NullInt64, error) {
	var n sql.NullInt64
	join := c.killWhenEnded(ctx, s)
	err := s.conn.QueryRowContext(context.WithoutCancel(ctx), stmt, args...).Scan(&n)
	join()
	return n, err
}

// killWhenEnded has the server end the statement that runs on s once ctx ends.
// The function that it returns calls that off, or waits until it is done, so
// that the kill hits no later statement. If the kill does not come through,
// the statement ends with its own limit.
func (c *client) killWhenEnded(ctx context.Context, s *session) (join func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		kctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Timeout)
		defer cancel()
		conn, err := c.db.Conn(kctx)
		if err != nil {
			return
		}
		defer giveUp(conn)
		_, _ = conn.ExecContext(kctx, "KILL QUERY "+strconv.FormatUint(s.id, 10))
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

// giveUp closes conn, whatever state it is in, so that nothing can use it
// again.
func giveUp(conn *sql.Conn) {
	// ErrBadConn makes database/sql close the driver's connection instead of
	// keeping it for others.
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
}

// settle makes sure that no connection given up in doubt is left on the
// server, so that nothing sent on one can have an effect any more. It kills
// what is left, and waits until it is gone. As long as it has not done that,
// all is open, so its errors are ErrUnknown.
func (c *client) settle(ctx context.Context, doing, key string) error {
	for len(c.past) > 0 {
		s, err := c.session(ctx)
		if err == nil {
			err = c.bury(ctx, s, c.past[0])
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w: %w", doing, key, impls.ErrUnknown, err)
		}
		c.past = c.past[1:]
	}
	return nil
}

// buryWait is how long to wait for a killed connection before looking again.
const buryWait = 2 * time.Millisecond

// bury kills the connection of dead, by statements on s, until the server has
// it no more.
func (c *client) bury(ctx context.Context, s, dead *session) error {
	for {
		left, err := c.number(ctx, s,
			"SELECT COUNT(*) FROM information_schema.processlist WHERE id = ? AND host = ?", dead.id, dead.host)
		if err != nil {
			return c.fail("look for", fmt.Sprintf("connection %d", dead.id), err)
		}
		if left.Int64 == 0 {
			return nil
		}
		if _, err := c.exec(ctx, s, "KILL "+strconv.FormatUint(dead.id, 10)); err != nil && !isNumber(err, noSuchThread) {
			return c.fail("kill", fmt.Sprintf("connection %d", dead.id), err)
		}
		if err := c.cfg.Clock.Sleep(ctx, buryWait); err != nil {
			return err
		}
	}
}

// noSuchThread is the number of the server's error for a KILL of a connection
// that is gone.
const noSuchThread = 1094

func isNumber(err error, number uint16) bool {
	var me *mysql.MySQLError
	return errors.As(err, &me) && me.Number == number
}

// fail names the outcome of err, and gives the connection up unless the server
// itself answered with something definite, which leaves it in order.
func (c *client) fail(doing, key string, err error) error {
	out := outcome(doing, key, err)
	var me *mysql.MySQLError
	if !errors.As(err, &me) || errors.Is(out, impls.ErrUnknown) {
		c.discard()
	}
	return out
}
