package zookeeper

import (
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// heardConn listens to the packets of one connection. Whatever a server
// answers it received after we sent it, and a session's time starts anew with
// every packet that its server receives; so the moment before the newest
// answered packet was sent is one from which the session lives a whole
// timeout.
//
// The driver writes each packet by one call, and reads each by two: its length
// and its body. Both directions begin with the connect packet; after it a
// request and its reply carry the same xid, and replies come in the order of
// requests. A packet that a server sends of its own accord has the xid -1.
type heardConn struct {
	net.Conn
	now     func() time.Time
	connect func(sent time.Time, timeout time.Duration, session int64)
	// heard is told when a reply's request was sent, what that asked for, and
	// the error code of the answer, 0 for none.
	heard func(sent time.Time, opcode, code int32)

	mu      sync.Mutex
	greeted bool // the connect packet was sent
	asked   []question

	// Of the reading side, which has one goroutine.
	header    [4 + bodyStart]byte
	have      int // bytes of header
	left      int // bytes of the body still to come; 0: a length comes next
	connected bool
}

// bodyStart is how much of a packet's body is of interest: an xid (4), a zxid (8)
// and an error code (4), or the protocol version (4), the timeout (4) and the id
// (8) of a session.
const bodyStart = 16

type question struct {
	xid, opcode int32
	sent        time.Time
}

const (
	xidConnect int32 = 0 // ours: the connect packet has none
	xidEvent   int32 = -1
)

func (c *heardConn) Write(b []byte) (int, error) {
	q := question{sent: c.now()}
	c.mu.Lock()
	if c.greeted && len(b) >= 12 {
		q.xid, q.opcode = int32(binary.BigEndian.Uint32(b[4:])), int32(binary.BigEndian.Uint32(b[8:]))
	}
	c.greeted = true
	c.asked = append(c.asked, q)
	c.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *heardConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.listen(b[:n])
	return n, err
}

// listen follows the packets through the bytes that were read.
func (c *heardConn) listen(b []byte) {
	for len(b) > 0 {
		if c.have < 4 {
			n := copy(c.header[c.have:4], b)
			c.have += n
			b = b[n:]
			if c.have == 4 {
				c.left = int(int32(binary.BigEndian.Uint32(c.header[:])))
				if c.left <= 0 {
					c.have = 0 // nothing a server sends; the driver will choke on it
				}
			}
			continue
		}
		n := min(len(b), c.left)
		c.have += copy(c.header[min(c.have, len(c.header)):], b[:n])
		c.left -= n
		b = b[n:]
		if c.left == 0 {
			c.packet(c.header[4:c.have])
			c.have = 0
		}
	}
}

// packet takes note of one packet, of which it gets the start.
func (c *heardConn) packet(b []byte) {
	xid := xidConnect
	if c.connected {
		if len(b) < 4 {
			return
		}
		xid = int32(binary.BigEndian.Uint32(b))
	}
	if xid == xidEvent && c.connected {
		return
	}
	q, ok := c.answered(xid)
	switch {
	case !ok:
		return
	case c.connected && len(b) == bodyStart:
		c.heard(q.sent, q.opcode, int32(binary.BigEndian.Uint32(b[12:])))
		return
	case c.connected:
		return // shorter than any reply; the driver will choke on it
	}
	c.connected = true
	if len(b) == bodyStart {
		c.connect(q.sent, time.Duration(int32(binary.BigEndian.Uint32(b[4:])))*time.Millisecond, int64(binary.BigEndian.Uint64(b[8:])))
	}
}

// answered returns what xid answers, and forgets it and what was sent before.
func (c *heardConn) answered(xid int32) (question, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, q := range c.asked {
		if q.xid == xid {
			c.asked = append(c.asked[:0], c.asked[i+1:]...)
			return q, true
		}
	}
	return question{}, false
}
