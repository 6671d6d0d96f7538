package zookeeper

import (
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// frameObserver observes the packets of one connection. A session's timeout
// restarts with every packet that the server receives, and the server answers a
// packet after it received it: so the session lasts at least one timeout from
// just before the newest answered packet was sent.
//
// The driver writes each packet with one call, and reads each with two: its
// length and its body. Both directions begin with the connect packet; after it
// a request and its reply have the same xid, and replies come in the order of
// requests. Events have xid -1.
//
// It also keeps an order that the driver does not keep. On a new connection the
// driver sets its watches again, with the newest transaction it knows, and
// receives all events since. A reply to another request that is read before may
// advance that transaction, and earlier events would be lost. So replies are
// delayed until the watches are set.
type frameObserver struct {
	net.Conn
	now     func() time.Time
	connect func(sent time.Time, timeout time.Duration, session int64)
	// replied is called with the time when a reply's request was sent, its
	// opcode, and the error code of the reply, 0 for none.
	replied func(sent time.Time, opcode, code int32)
	// watches are the watches of the session.
	watches *watchSet
	// patience limits the delay of a reply, in case the watches are never set.
	patience time.Duration

	mu      sync.Mutex
	greeted bool // the connect packet was sent
	pending []request
	set     chan struct{} // closed when the watches are set; nil if there is nothing to wait for
	unset   bool          // it was closed without setting them

	// Of the reading side, which has one goroutine.
	packet    []byte // so far: its length, and the observed part of its body
	left      int    // bytes of the body still to come; 0: a length comes next
	connected bool
}

// bodyStart is the observed part of a packet's body, except for an event's: xid
// (4), zxid (8) and error code (4), or the protocol version (4), the timeout
// (4) and the id (8) of a session.
const bodyStart = 16

type request struct {
	xid, opcode int32
	sent        time.Time
	watch       string // the path to watch, "" for none
}

const (
	xidConnect int32 = 0 // ours: the connect packet has no xid
	xidEvent   int32 = -1
)

func (c *frameObserver) Write(b []byte) (int, error) {
	q := request{sent: c.now()}
	c.mu.Lock()
	if c.greeted && len(b) >= 12 {
		q.xid, q.opcode = int32(binary.BigEndian.Uint32(b[4:])), int32(binary.BigEndian.Uint32(b[8:]))
		q.watch = pathToWatch(q.opcode, b[4:])
	}
	c.greeted = true
	c.pending = append(c.pending, q)
	if q.opcode == opSetWatches {
		c.deliver()
	}
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// Close ends the connection, also for a delayed reply.
func (c *frameObserver) Close() error {
	c.mu.Lock()
	c.unset = c.unset || c.set != nil
	c.deliver()
	c.mu.Unlock()
	return c.Conn.Close()
}

// deliver ends the delay of replies.
func (c *frameObserver) deliver() {
	if c.set != nil {
		close(c.set)
		c.set = nil
	}
}

func (c *frameObserver) Read(b []byte) (int, error) {
	connected := c.connected
	n, err := c.Conn.Read(b)
	c.observe(b[:n])
	if connected && !c.inOrder() {
		return 0, net.ErrClosed
	}
	return n, err
}

// inOrder returns when the watches, if there are any, are set. It is false if the
// connection was closed instead.
func (c *frameObserver) inOrder() bool {
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

// observe follows the packets through the bytes that were read.
func (c *frameObserver) observe(b []byte) {
	for len(b) > 0 {
		if have := len(c.packet); have < 4 {
			n := min(len(b), 4-have)
			c.packet = append(c.packet, b[:n]...)
			b = b[n:]
			if len(c.packet) == 4 {
				c.left = int(int32(binary.BigEndian.Uint32(c.packet)))
				if c.left <= 0 {
					c.packet = c.packet[:0] // invalid; the driver will reject it
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

// wanted is how many of the packet's next bytes are observed.
func (c *frameObserver) wanted() int {
	body := c.packet[4:]
	if len(body) >= bodyStart && c.connected && int32(binary.BigEndian.Uint32(body)) == xidEvent {
		return c.left
	}
	return bodyStart - len(body)
}

// whole handles the observed part of one packet.
func (c *frameObserver) whole(b []byte) {
	xid := xidConnect
	if c.connected {
		if len(b) < 4 {
			return
		}
		xid = int32(binary.BigEndian.Uint32(b))
	}
	if xid == xidEvent && c.connected {
		c.watches.happened(b)
		return
	}
	q, ok := c.answered(xid)
	switch {
	case !ok:
		return
	case c.connected && len(b) == bodyStart:
		code := int32(binary.BigEndian.Uint32(b[12:]))
		c.watches.answered(q, code)
		c.replied(q.sent, q.opcode, code)
		return
	case c.connected:
		return // shorter than any reply; the driver will reject it
	}
	c.connected = true
	if len(b) == bodyStart {
		c.begin(q.sent, time.Duration(int32(binary.BigEndian.Uint32(b[4:])))*time.Millisecond, int64(binary.BigEndian.Uint64(b[8:])))
	}
}

// begin handles the session of the connection; 0 means that it expired, and its
// watches with it.
func (c *frameObserver) begin(sent time.Time, timeout time.Duration, session int64) {
	if session == 0 {
		c.watches.end()
	}
	if c.watches.any() {
		c.mu.Lock()
		c.set = make(chan struct{})
		c.mu.Unlock()
	}
	c.connect(sent, timeout, session)
}

// answered returns the request with that xid, and forgets it and earlier ones.
func (c *frameObserver) answered(xid int32) (request, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, q := range c.pending {
		if q.xid == xid {
			c.pending = append(c.pending[:0], c.pending[i+1:]...)
			return q, true
		}
	}
	return request{}, false
}
