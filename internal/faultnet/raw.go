package faultnet

import (
	"errors"
	"syscall"
)

// rawConn is the raw connection that drivers look at, before they use a
// connection again, to see whether the server has closed it. It must not tell
// what a rule hides, so while a rule is in force it answers as if nothing had
// come: the function that would look is not called.
type rawConn struct {
	conn *conn
	raw  syscall.RawConn
	err  error
}

func newRawConn(c *conn) *rawConn {
	r := &rawConn{conn: c, err: errors.ErrUnsupported}
	if sc, ok := c.Conn.(syscall.Conn); ok {
		r.raw, r.err = sc.SyscallConn()
	}
	return r
}

// SyscallConn gives drivers the raw connection for their liveness checks. Its
// Read answers nil without a call while a rule is in force, and an error if
// bytes that a rule had held back wait to be read.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if c.raw.err != nil {
		return nil, c.raw.err
	}
	return c.raw, nil
}

// Control gives the descriptor, for options of the socket.
func (r *rawConn) Control(f func(fd uintptr)) error { return r.raw.Control(f) }

// errUnread is what a look at a connection tells that should be idle, and is
// not.
var errUnread = errors.New("bytes that came while a rule was in force wait to be read")

// Read calls f as the socket's own Read does, unless a rule is in force.
func (r *rawConn) Read(f func(fd uintptr) (done bool)) error {
	for !r.conn.slow[in].Load() {
		err := r.raw.Read(f)
		if err == nil || !r.conn.interrupted(in, err) {
			return err
		}
	}
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.lost(in); err != nil {
		return c.opError("raw-read", err)
	}
	if len(c.flows[in].queue) > 0 && c.wire.plain() {
		return c.opError("raw-read", errUnread)
	}
	return nil
}

// Write is refused while a rule is in force, which it would go around.
func (r *rawConn) Write(f func(fd uintptr) (done bool)) error {
	if r.conn.slow[out].Load() {
		return r.conn.opError("raw-write", errors.ErrUnsupported)
	}
	return r.raw.Write(f)
}
