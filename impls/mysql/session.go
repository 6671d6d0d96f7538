package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/lockbench/lockbench/impls"
)

// options of a client's driver, apart from cfg.
type options struct {
	// wait is how long a statement may wait in the server, in addition to
	// cfg.Timeout.
	wait time.Duration
	// foundRows counts the rows that matched instead of those that changed.
	foundRows bool
	// transactions: every statement is part of a transaction that lasts until
	// its commit, and waits for a row as long as wait.
	transactions bool
}

// client is one client of a database with one connection for all statements of
// its locks, so that database/sql neither picks another connection nor sends
// anything twice.
type client struct {
	cfg  impls.Config
	db   *sql.DB
	to   *servers   // the servers that db connects to
	s    *session   // nil: connect at the next use
	past []*session // abandoned, and perhaps still on the server
}

// identity is the server's identification of a connection.
type identity struct {
	id uint64
	// host is the client's address as the server sees it. With the id it
	// identifies the connection even after a restart, when the ids start again.
	host string
	// server is the server id, which differs within a topology.
	server uint64
}

// session is one connection.
type session struct {
	identity
	conn *sql.Conn
	// broken is closed when the connection was found broken or was abandoned.
	broken chan struct{}
	// locks that the connection may hold, by name (mysql/get-lock only).
	locks map[string]*grant
}

// open connects a client.
func open(ctx context.Context, cfg impls.Config, opt options) (*client, error) {
	c, err := unconnected(cfg, opt)
	if err != nil {
		return nil, err
	}
	if _, err := c.session(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("open mysql client: %w", err)
	}
	return c, nil
}

// unconnected is a client that connects at its first use.
func unconnected(cfg impls.Config, opt options) (*client, error) {
	db, to, err := openDB(cfg, opt)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(2)  // the client's own, and one for KILL
	db.SetMaxIdleConns(-1) // close released connections
	return &client{cfg: cfg, db: db, to: to}, nil
}

// openDB opens a database/sql pool on the servers of cfg.
func openDB(cfg impls.Config, opt options) (*sql.DB, *servers, error) {
	if n := len(cfg.Addresses); n == 0 || n > 1 && !several(cfg) {
		return nil, nil, fmt.Errorf("open mysql client: want the address of one server, got %d", n)
	}
	to := newServers(cfg)
	for _, address := range cfg.Addresses {
		server, err := connector(cfg, opt, address)
		if err != nil {
			return nil, nil, fmt.Errorf("open mysql client: %w", err)
		}
		to.servers = append(to.servers, server)
	}
	var connects driver.Connector = to
	if !several(cfg) {
		connects = to.servers[0]
	}
	db := sql.OpenDB(connects)
	db.SetConnMaxLifetime(0) // no connection ends because of its age
	return db, to, nil
}

// connector connects to one server.
func connector(cfg impls.Config, opt options, address string) (driver.Connector, error) {
	// The server must stop waiting for a row before the client stops waiting
	// for the server, or the statement would be executed unseen.
	autocommit, rowWait := "1", max(1, int(cfg.Timeout/time.Second)-1)
	if opt.transactions {
		autocommit, rowWait = "0", int(opt.wait/time.Second)
	}
	conf := mysql.NewConfig()
	conf.Net = "tcp"
	conf.Addr = address
	conf.User, conf.Passwd, conf.DBName = cfg.Account.User, cfg.Account.Password, cfg.Account.Database
	conf.DialFunc = cfg.Dial
	conf.TLS = cfg.TLSFor(address)
	conf.Logger = &mysql.NopLogger{} // its messages are in the errors
	conf.Timeout = cfg.Timeout
	conf.WriteTimeout = cfg.Timeout
	conf.ReadTimeout = cfg.Timeout + opt.wait
	conf.InterpolateParams = true // one round trip for a statement, not two
	conf.ClientFoundRows = opt.foundRows
	conf.Params = map[string]string{
		"autocommit": autocommit,
		// 24 days, the most that every platform accepts: a silent holder must
		// not be disconnected.
		"wait_timeout":             "2147483",
		"innodb_lock_wait_timeout": strconv.Itoa(rowWait),
	}
	if cfg.Topology == galera {
		maps.Copy(conf.Params, groupParams())
	}
	return mysql.NewConnector(conf)
}

// Close closes the connection and so, when the server detects it, ends the
// locks bound to it.
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
	who, err := identify(ctx, conn)
	if err != nil {
		return nil, err
	}
	c.s = newSession(who, conn)
	c.s.locks = make(map[string]*grant)
	return c.s, nil
}

func newSession(who identity, conn *sql.Conn) *session {
	return &session{identity: who, conn: conn, broken: make(chan struct{})}
}

// identify reads the identity of conn, and closes conn if that fails. Its
// errors are ConnectErrors.
func identify(ctx context.Context, conn *sql.Conn) (who identity, err error) {
	err = conn.QueryRowContext(ctx,
		"SELECT id, host, @@server_id FROM information_schema.processlist WHERE id = CONNECTION_ID()").Scan(&who.id, &who.host, &who.server)
	if err != nil {
		giveUp(conn)
		return who, &impls.ConnectError{Err: err}
	}
	return who, nil
}

// discard abandons the connection because of an unknown outcome: a statement
// may still be under way or running.
func (c *client) discard() {
	if c.s != nil {
		c.abandon(c.s)
		c.s = nil
	}
}

// abandon closes s, and records that the server may still have it.
func (c *client) abandon(s *session) {
	giveUp(s.conn)
	close(s.broken)
	c.past = append(c.past, s)
}

// abandoned reports whether s was abandoned.
func (s *session) abandoned() bool {
	select {
	case <-s.broken:
		return true
	default:
		return false
	}
}

// giveUp closes conn, in any state, so that it is not used again.
func giveUp(conn *sql.Conn) {
	// ErrBadConn makes database/sql close the driver's connection instead of
	// keeping it.
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
}

// settle ends all abandoned connections on the server, so that nothing sent on
// them can have an effect later. It kills them, and waits until they are gone.
// Until then all outcomes are open, so its errors are ErrUnknown.
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

// bury kills the connection of dead, with statements on s, until the server has
// ended it. A connection to a former primary is ignored: nothing executed there
// reaches the other servers, unless that server becomes the primary again with
// writes that they never received.
func (c *client) bury(ctx context.Context, s, dead *session) error {
	switch {
	case dead.server == s.server:
	case c.cfg.Topology == galera:
		return c.buryThere(ctx, dead)
	default:
		return nil
	}
	return c.killed(ctx, dead,
		func(query string, args ...any) (int64, error) {
			left, err := c.wait(ctx, s, query, args...)
			if err != nil {
				err = c.fail("look for", fmt.Sprintf("connection %d", dead.id), err)
			}
			return left.Int64, err
		},
		func(kill string) error {
			err := c.quick(ctx, s, kill)
			if err != nil && !isNumber(err, noSuchThread) {
				err = c.fail("kill", fmt.Sprintf("connection %d", dead.id), err)
			}
			return err
		})
}

// noSuchThread is the server's error number for a KILL of a connection that is
// gone.
const noSuchThread = 1094

func isNumber(err error, number uint16) bool {
	var me *mysql.MySQLError
	return errors.As(err, &me) && me.Number == number
}

// fail returns the outcome of err, and abandons the connection unless the
// server itself returned a definite error and can be used again.
func (c *client) fail(doing, key string, err error) error {
	out := outcome(doing, key, err)
	var me *mysql.MySQLError
	switch isUnknown := errors.Is(out, impls.ErrUnknown); {
	case !isUnknown && errors.As(err, &me) && !c.left(err):
	case isUnknown || c.s == nil || len(c.s.locks) > 0:
		c.discard()
	default:
		c.drop()
	}
	return out
}

// drop closes the connection, which holds nothing and has no unknown outcome.
func (c *client) drop() {
	giveUp(c.s.conn)
	close(c.s.broken)
	c.s = nil
}
