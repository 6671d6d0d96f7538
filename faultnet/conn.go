package faultnet

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// conn is one connection. mode is read on every call; everything else is
// touched only when something is wrong, or when a deadline is set.
type conn struct {
	net.Conn
	dialer *Dialer
	mode   atomic.Int32 // Mode, or one of the two below

	mu            sync.Mutex
	wake          chan struct{} // closed and replaced whenever a waiter should look again
	readDeadline  time.Time
	writeDeadline time.Time
	closed        bool
	pending       []byte // read before or during a stall, not yet delivered
	pendingErr    error
}

// States of one connection beyond the dialer's modes.
const (
	backlog = int32(100 + iota) // passing again, but pending goes first
	broken                      // reset
)

// Read delivers what came. Bytes that arrive during a stall are kept until it
// is over: a read whose deadline passes meanwhile times out without losing
// them.
func (c *conn) Read(b []byte) (int, error) {
	if c.mode.Load() == int32(Pass) {
		n, err := c.Conn.Read(b)
		switch m := c.mode.Load(); {
		case m == int32(Pass), m == int32(Refuse):
			return n, err
		case m == broken:
			return 0, c.opError("read", syscall.ECONNRESET)
		case n == 0 && errors.Is(err, os.ErrDeadlineExceeded):
			return 0, err
		}
		// The read was under way when the stall came.
		c.mu.Lock()
		c.pending, c.pendingErr = append(c.pending, b[:n]...), err
		c.mu.Unlock()
	}
	return c.slowRead(b)
}

func (c *conn) slowRead(b []byte) (int, error) {
	if err := c.wait("read", func() time.Time { return c.readDeadline }); err != nil {
		return 0, err
	}
	c.mu.Lock()
	if len(c.pending) > 0 {
		n := copy(b, c.pending)
		c.pending = c.pending[n:]
		c.settle()
		c.mu.Unlock()
		return n, nil
	}
	if err := c.pendingErr; err != nil {
		c.pendingErr = nil
		c.settle()
		c.mu.Unlock()
		return 0, err
	}
	c.settle()
	c.mu.Unlock()
	if c.mode.Load() == int32(Pass) {
		return c.Read(b)
	}
	return c.Conn.Read(b) // Refuse: new dials only
}

// settle enters the backlog state while something is pending, and leaves it
// after. c.mu is held.
func (c *conn) settle() {
	if len(c.pending) == 0 && c.pendingErr == nil {
		c.pending = nil
		c.mode.CompareAndSwap(backlog, int32(Pass))
		return
	}
	c.mode.CompareAndSwap(int32(Pass), backlog)
}

// Write sends b. A write that meets a stall sends nothing until it is over.
func (c *conn) Write(b []byte) (int, error) {
	if c.mode.Load() != int32(Pass) {
		if err := c.wait("write", func() time.Time { return c.writeDeadline }); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Write(b)
	if err != nil && c.mode.Load() == broken {
		err = c.opError("write", syscall.ECONNRESET)
	}
	return n, err
}

// wait returns when the connection passes again, or why it never will.
func (c *conn) wait(op string, deadline func() time.Time) error {
	for {
		c.mu.Lock()
		mode, until, wake, closed := c.mode.Load(), deadline(), c.wake, c.closed
		c.mu.Unlock()
		switch {
		case mode == broken:
			return c.opError(op, syscall.ECONNRESET)
		case closed:
			return c.opError(op, net.ErrClosed)
		case mode != int32(Stall):
			return nil
		case !until.IsZero() && !time.Now().Before(until):
			return c.opError(op, os.ErrDeadlineExceeded)
		}
		expired, stop := timer(until)
		select {
		case <-wake:
		case <-expired:
		}
		stop()
	}
}

func (c *conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// set follows the dialer's mode.
func (c *conn) set(m Mode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := int32(m)
	if m == Pass && (len(c.pending) > 0 || c.pendingErr != nil) {
		next = backlog
	}
	c.mode.Store(next)
	c.rouse()
}

// rouse lets waiters look again. c.mu is held.
func (c *conn) rouse() {
	close(c.wake)
	c.wake = make(chan struct{})
}

func (c *conn) reset() {
	c.mu.Lock()
	c.mode.Store(broken)
	c.rouse()
	c.mu.Unlock()
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // the close below then sends RST instead of FIN
	}
	_ = c.Conn.Close()
}

// Close closes the connection and ends every wait on it.
func (c *conn) Close() error {
	c.dialer.forget(c)
	c.mu.Lock()
	c.closed = true
	c.rouse()
	c.mu.Unlock()
	return c.Conn.Close()
}

func (c *conn) SetDeadline(t time.Time) error {
	c.setDeadlines(&t, &t)
	return c.Conn.SetDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.setDeadlines(&t, nil)
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.setDeadlines(nil, &t)
	return c.Conn.SetWriteDeadline(t)
}

// setDeadlines keeps what a waiter needs, and rouses waiters if there can be
// any.
func (c *conn) setDeadlines(read, write *time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if read != nil {
		c.readDeadline = *read
	}
	if write != nil {
		c.writeDeadline = *write
	}
	if c.mode.Load() != int32(Pass) {
		c.rouse()
	}
}

// SyscallConn gives drivers the raw descriptor for their liveness checks,
// which look past any fault.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return sc.SyscallConn()
}
