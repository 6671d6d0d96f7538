package faultnet

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// conn is a connection of a Dialer. While no rule concerns it, its calls go
// straight to the socket, after a look at slow. When a rule comes, calls under
// way are driven out of the socket by a deadline that has passed, and from then
// on the line stands between the user and the socket: what is written is queued
// and sent by a goroutine, what comes is queued by another. When all rules are
// lifted and a queue is empty, that direction is fast again.
type conn struct {
	net.Conn
	line
	dialer *Dialer
	addr   string // as dialled
	raw    *rawConn
	slow   [2]atomic.Bool

	// Guarded by line.mu.
	deadline         [2]time.Time // as the user set them
	left             error        // why the user has it no more: closed or reset
	failed           error        // what the socket said to a queued write
	filling, sending bool         // the goroutines
}

func newConn(nc net.Conn, d *Dialer, address string) *conn {
	c := &conn{Conn: nc, dialer: d, addr: address}
	c.wire = &wire{}
	c.flows[out].dst = nc
	c.raw = newRawConn(c)
	return c
}

func (c *conn) address() string { return c.addr }

// Read delivers what came and may pass. A read whose deadline passes loses
// nothing of what comes later.
func (c *conn) Read(b []byte) (int, error) {
	for !c.slow[in].Load() {
		n, err := c.Conn.Read(b)
		if c.slow[in].Load() && c.divert(b[:n], err) {
			break
		}
		if n > 0 || !c.interrupted(in, err) {
			return n, err
		}
	}
	return c.slowRead(b)
}

// divert queues what a read brought that was under way when a rule came. It is
// false if the rule is gone already.
func (c *conn) divert(b []byte, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.slow[in].Load() {
		return false
	}
	if len(b) > 0 {
		c.push(in, b, nil)
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.push(in, nil, err)
	}
	return true
}

// interrupted tells whether err comes of our own deadline, not of the user's.
func (c *conn) interrupted(d direction, err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.expired(d)
}

func (c *conn) slowRead(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if err := c.lost(in); err != nil {
			return 0, c.opError("read", err)
		}
		c.settle()
		if !c.slow[in].Load() {
			c.mu.Unlock()
			n, err := c.Read(b)
			c.mu.Lock()
			return n, err
		}
		ok, n, again := c.next(in)
		if ok {
			if end := c.flows[in].queue[0].end; end != nil {
				return 0, end // and stays: it is said again
			}
			n = copy(b, c.flows[in].queue[0].b[:n])
			c.pop(in, n)
			c.settle()
			return n, nil
		}
		if !c.filling && !c.flows[in].ended {
			c.filling = true
			go c.receive()
		}
		c.wait(earliest(again, c.deadline[in]))
	}
}

// receive queues what comes, as long as there are rules and a user.
func (c *conn) receive() {
	c.mu.Lock()
	robber := c.fill(in, c.Conn, func() bool { return c.left != nil || c.wire.plain() })
	c.filling = false
	c.settle()
	c.rouse()
	c.mu.Unlock()
	if robber != nil {
		c.dialer.hub.robbed(c, robber)
	}
}

// Write sends b, or queues it while rules are in force: it then answers success
// as a kernel does that has room for b, whatever becomes of it.
func (c *conn) Write(b []byte) (int, error) {
	done := 0
	for !c.slow[out].Load() {
		n, err := c.Conn.Write(b[done:])
		done += n
		if err == nil {
			return done, nil
		}
		// Writers are expected to take turns, as all drivers do: one that was
		// interrupted half way goes on with the rest as if nobody had come between.
		if !c.slow[out].Load() && !c.interrupted(out, err) {
			return done, err
		}
	}
	n, err := c.slowWrite(b[done:])
	return done + n, err
}

func (c *conn) slowWrite(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := 0
	for {
		if err := c.lost(out); err != nil {
			return done, c.opError("write", err)
		}
		c.settle()
		if !c.slow[out].Load() {
			c.mu.Unlock()
			n, err := c.Write(b[done:])
			c.mu.Lock()
			return done + n, err
		}
		if c.failed != nil {
			if c.wire.hidesEnd() {
				return len(b), nil
			}
			return done, c.failed
		}
		if room := limit - c.flows[out].size; room > 0 {
			n := min(room, len(b)-done)
			c.push(out, b[done:done+n], nil)
			c.startSending()
			if done += n; done == len(b) {
				return done, nil
			}
			continue
		}
		c.wait(c.deadline[out])
	}
}

func (c *conn) startSending() {
	if !c.sending {
		c.sending = true
		go c.send()
	}
}

// send sends what is queued, as long as there are rules or something is
// queued; for a connection that its user has left it ends the socket as well.
func (c *conn) send() {
	c.mu.Lock()
	end, err := c.drain(out, func() bool { return c.left != nil || c.wire.plain() })
	c.sending = false
	if err != nil {
		c.failed = err
		c.kill(out)
	}
	over := end != nil || err != nil && c.left != nil
	c.settle()
	c.rouse()
	c.mu.Unlock()
	if !over {
		return
	}
	if end == errReset {
		abort(c.Conn)
	} else {
		_ = c.Conn.Close()
	}
	c.dialer.hub.leave(c)
}

// lost is why a call in a direction can only fail, or nil. c.mu is held.
func (c *conn) lost(d direction) error {
	if c.left != nil {
		return c.left
	}
	if c.expired(d) {
		return os.ErrDeadlineExceeded
	}
	return nil
}

func (c *conn) expired(d direction) bool {
	return !c.deadline[d].IsZero() && !time.Now().Before(c.deadline[d])
}

func (c *conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// follow puts the connection under the rules of w.
func (c *conn) follow(w *wire) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change(w)
	if c.left != nil {
		return
	}
	if w.plain() {
		if c.filling {
			_ = c.Conn.SetReadDeadline(past)
		}
		c.settle()
		return
	}
	if !c.slow[in].Swap(true) {
		_ = c.Conn.SetReadDeadline(past)
	}
	if !c.slow[out].Swap(true) {
		c.flows[out].interrupt()
	}
}

// settle makes the directions fast in which nothing is left to do. c.mu is
// held.
func (c *conn) settle() {
	if c.left != nil || !c.wire.plain() {
		return
	}
	if c.slow[in].Load() && !c.filling && len(c.flows[in].queue) == 0 {
		_ = c.Conn.SetReadDeadline(c.deadline[in])
		c.slow[in].Store(false)
	}
	if f := &c.flows[out]; c.slow[out].Load() && !c.sending && !f.dead && len(f.queue) == 0 {
		f.interrupted = false
		_ = c.Conn.SetWriteDeadline(c.deadline[out])
		c.slow[out].Store(false)
	}
}

// leave ends the user's part: every call fails from now on. c.mu is held.
func (c *conn) leave(why error) {
	c.left = why
	c.slow[in].Store(true)
	c.slow[out].Store(true)
	c.kill(in)
}

// linger leaves it to the rules when the socket may end. c.mu is held.
func (c *conn) linger(end error) {
	// A call that is in the socket still must leave it.
	_ = c.Conn.SetReadDeadline(past)
	if !c.flows[out].sending {
		c.flows[out].interrupt()
	}
	c.push(out, nil, end)
	c.startSending()
}

// sever breaks the connection for its user, and for the server too unless a
// rule holds that back.
func (c *conn) sever() (broke, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left != nil {
		return false, false
	}
	c.leave(errReset)
	c.drop(out)
	if c.wire.held[out] && !c.flows[out].dead {
		c.linger(errReset)
		return true, false
	}
	abort(c.Conn)
	return true, true
}

// Close ends every call. What was written is sent first, and the server hears
// of the close, when the rules allow: until then the socket stays.
func (c *conn) Close() error {
	c.mu.Lock()
	if c.left != nil {
		again := c.left == net.ErrClosed
		c.left = net.ErrClosed
		c.mu.Unlock()
		if again {
			return c.opError("close", net.ErrClosed)
		}
		return nil // it was reset
	}
	c.leave(net.ErrClosed)
	f := &c.flows[out]
	if !f.dead && (len(f.queue) > 0 || c.wire.held[out] || c.wire.late) {
		c.linger(net.ErrClosed)
		c.mu.Unlock()
		c.dialer.hub.quit(c)
		return nil
	}
	c.mu.Unlock()
	c.dialer.hub.leave(c)
	return c.Conn.Close()
}

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.setDeadline(in, t), c.setDeadline(out, t))
}

func (c *conn) SetReadDeadline(t time.Time) error  { return c.setDeadline(in, t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(out, t) }

// setDeadline keeps a deadline, for the socket has deadlines of ours while the
// direction is slow.
func (c *conn) setDeadline(d direction, t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline[d] = t
	switch {
	case c.left == net.ErrClosed:
		return c.opError("set", c.left)
	case c.slow[d].Load():
		c.rouse()
		return nil
	case d == in:
		return c.Conn.SetReadDeadline(t)
	default:
		return c.Conn.SetWriteDeadline(t)
	}
}

// earliest is the earlier of two times, of which the zero time is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
