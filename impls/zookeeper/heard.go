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
//
// It also keeps order where the driver does not. On a new connection the driver
// asks for its watches again, for all events since the newest transaction that
// it knows of. Replies to other requests may move that meanwhile, beside its
// reading, and an event before them would then never be told. So none is let
// through before the watches are asked for.
type heardConn struct {
	net.Conn
	now     func() time.Time
	connect func(sent time.Time, timeout time.Duration, session int64)
	// heard is told when a reply's request was sent, what that asked for, and
	// the error code of the answer, 0 for none.
	heard func(sent time.Time, opcode, code int32)
	// watched are the watches of the session.
	watched *watched
	// patience is how long a reply is held back at most, were watches never
	// asked for.
	patience time.Duration

	mu      sync.Mutex
	greeted bool // the connect packet was sent
	asked   []question
	set     chan struct{} // closed when the watches are asked for; nil: there were none, or they are
	unset   bool          // it was closed before they were

	// Of the reading side, which has one goroutine.
	packet    []byte // so far: its length, and what of its body is of interest
	left      int    // bytes of the body still to come; 0: a length comes next
	connected bool
}

// bodyStart is how much of a packet's body is of interest, but for an event's: an
// xid (4), a zxid (8) and an error code (4), or the protocol version (4), the
// timeout (4) and the id (8) of a session.
const bodyStart = 16

type question struct {
	xid, opcode int32
	sent        time.Time
	watch       string // the path that it asks to watch, "" for none
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
		q.watch = pathToWatch(q.opcode, b[4:])
	}
	c.greeted = true
	c.asked = append(c.asked, q)
	if q.opcode == opSetWatches {
		c.letThrough()
	}
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// Close ends the connection, also for a reply that is held back.
func (c *heardConn) Close() error {
	c.mu.Lock()
	c.unset = c.unset || c.set != nil
	c.letThrough()
	c.mu.Unlock()
	return c.Conn.Close()
}

// letThrough holds back nothing any more.
func (c *heardConn) letThrough() {
	if c.set != nil {
		close(c.set)
		c.set = nil
	}
}

func (c *heardConn) Read(b []byte) (int, error) {
	connected := c.connected
	n, err := c.Conn.Read(b)
	c.listen(b[:n])
	if connected && !c.inOrder() {
		return 0, net.ErrClosed
	}
	return n, err
}

// inOrder returns when the watches, if there are any, are asked for. It is false
// if the connection was closed instead.
func (c *heardConn) inOrder() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if set := c.set; set != nil {
		c.mu.Unlock()
		timer := time.NewTimer(c.patience)
		select {
		case <-set:
		case <-timer.C:
		}
		timer.Stop()
		c.mu.Lock()
		c.set = nil
	}
	return !c.unset
}

// listen follows the packets through the bytes that were read.
func (c *heardConn) listen(b []byte) {
	for len(b) > 0 {
		if have := len(c.packet); have < 4 {
			n := min(len(b), 4-have)
			c.packet = append(c.packet, b[:n]...)
			b = b[n:]
			if len(c.packet) == 4 {
				c.left = int(int32(binary.BigEndian.Uint32(c.packet)))
				if c.left <= 0 {
					c.packet = c.packet[:0] // nothing a server sends; the driver will choke on it
				}
			}
			continue
		}
		n := min(len(b), c.left)
		if wanted := c.wanted(); wanted > 0 {
			n = min(n, wanted)
			c.packet = append(c.packet, b[:n]...)
		}
		c.left -= n
		b = b[n:]
		if c.left == 0 {
			c.whole(c.packet[4:])
			c.packet = c.packet[:0]
		}
	}
}

// wanted is how many of the packet's next bytes are of interest.
func (c *heardConn) wanted() int {
	body := c.packet[4:]
	if len(body) >= bodyStart && c.connected && int32(binary.BigEndian.Uint32(body)) == xidEvent {
		return c.left
	}
	return bodyStart - len(body)
}

// whole takes note of one packet, of which it gets what is of interest.
func (c *heardConn) whole(b []byte) {
	xid := xidConnect
	if c.connected {
		if len(b) < 4 {
			return
		}
		xid = int32(binary.BigEndian.Uint32(b))
	}
	if xid == xidEvent && c.connected {
		c.watched.happened(b)
		return
	}
	q, ok := c.answered(xid)
	switch {
	case !ok:
		return
	case c.connected && len(b) == bodyStart:
		code := int32(binary.BigEndian.Uint32(b[12:]))
		c.watched.answered(q, code)
		c.heard(q.sent, q.opcode, code)
		return
	case c.connected:
		return // shorter than any reply; the driver will choke on it
	}
	c.connected = true
	if len(b) == bodyStart {
		c.begin(q.sent, time.Duration(int32(binary.BigEndian.Uint32(b[4:])))*time.Millisecond, int64(binary.BigEndian.Uint64(b[8:])))
	}
}

// begin takes note of the session that the connection has, 0 for none: it has
// expired, and its watches with it.
func (c *heardConn) begin(sent time.Time, timeout time.Duration, session int64) {
	if session == 0 {
		c.watched.end()
	}
	if c.watched.any() {
		c.mu.Lock()
		c.set = make(chan struct{})
		c.mu.Unlock()
	}
	c.connect(sent, timeout, session)
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
