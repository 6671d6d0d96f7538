package faultnet

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// limit is how many bytes wait in one direction of one connection, as in the
// buffers of a kernel; who writes more is held up.
const limit = 256 << 10

// line is what lies between the two ends of a connection while rules have to
// do with it: a queue in each direction. Everything is guarded by mu.
type line struct {
	mu     sync.Mutex
	wake   chan struct{} // closed when those who wait should look again; nil while nobody does
	wire   *wire
	serial uint64 // of the connection
	flows  [2]flow
}

// flow is one direction.
type flow struct {
	queue []chunk
	size  int      // bytes in the queue
	count uint64   // chunks so far
	dst   net.Conn // whom drain writes to
	// sending tells that drain is within a write to dst, and interrupted that
	// dst has a write deadline in the past, to end one.
	sending, interrupted bool
	ended                bool // nothing but a reset can follow
	dead                 bool // nothing can be delivered any more
	// What the rate lets pass, and when.
	portion int
	ready   time.Time
}

// chunk is bytes, or the end of a flow.
type chunk struct {
	b   []byte
	due time.Time // as long as any rule makes late
	end error
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// push queues what came. l.mu is held.
func (l *line) push(d direction, b []byte, end error) {
	f := &l.flows[d]
	if len(b) == 0 && end == nil || f.dead || f.ended && (end == nil || end == io.EOF) {
		return
	}
	c := chunk{b: append([]byte(nil), b...), end: end}
	if l.wire.late {
		c.due = time.Now().Add(l.wire.lateness(l.serial<<1|uint64(d), f.count))
	}
	l.wire.count(d, len(b))
	if d == out && len(b) > 0 {
		for _, f := range l.wire.loses {
			f.noteWrite(l)
		}
	}
	f.queue, f.size, f.count, f.ended = append(f.queue, c), f.size+len(b), f.count+1, f.ended || end != nil
	l.rouse()
}

// next is what may pass now: so many bytes of the first chunk, or its end. If
// nothing may, it tells when to look again; the zero time is when roused.
// l.mu is held.
func (l *line) next(d direction) (ok bool, n int, again time.Time) {
	f := &l.flows[d]
	if len(f.queue) == 0 || l.wire.held[d] {
		return false, 0, time.Time{}
	}
	c, now := &f.queue[0], time.Now()
	if l.wire.late && now.Before(c.due) {
		return false, 0, c.due
	}
	if l.wire.rate == 0 || c.end != nil {
		f.portion, f.ready = 0, time.Time{}
		return true, len(c.b), time.Time{}
	}
	if f.portion == 0 {
		// A fiftieth of a second's worth at a time, so that it trickles.
		f.portion = min(len(c.b), int(max(1, l.wire.rate/50)))
		f.ready = l.wire.reserve(d, f.portion, now)
	}
	if now.Before(f.ready) {
		return false, 0, f.ready
	}
	return true, min(f.portion, len(c.b)), time.Time{}
}

// pop takes n bytes of the first chunk away, or its end. l.mu is held.
func (l *line) pop(d direction, n int) {
	f := &l.flows[d]
	if len(f.queue) == 0 || n > len(f.queue[0].b) {
		return // dropped meanwhile
	}
	c := &f.queue[0]
	c.b = c.b[n:]
	f.size -= n
	f.portion = max(0, f.portion-n)
	if len(c.b) == 0 {
		f.queue[0] = chunk{}
		f.queue = f.queue[1:]
	}
	if len(f.queue) == 0 {
		f.queue = nil
	}
	l.rouse()
}

// drop empties a queue. l.mu is held.
func (l *line) drop(d direction) {
	f := &l.flows[d]
	f.queue, f.size, f.portion = nil, 0, 0
	l.rouse()
}

// kill says that nothing can be delivered in a direction any more. l.mu is held.
func (l *line) kill(d direction) {
	l.flows[d].dead = true
	l.drop(d)
}

// change puts the line under the rules of w. What they hold back is held back
// when it returns. l.mu is held, but let go of meanwhile.
func (l *line) change(w *wire) {
	old := l.wire
	l.wire = w
	for d := range l.flows {
		f := &l.flows[d]
		if w.held[d] && (old == nil || !old.held[d]) && f.size > 0 {
			for _, by := range w.forces {
				if by.holds(direction(d)) {
					by.held.Add(int64(f.size))
				}
			}
		}
	}
	l.rouse()
	for d := range l.flows {
		f := &l.flows[d]
		if w.held[d] && f.sending {
			f.interrupt()
			for f.sending {
				l.wait(time.Time{})
			}
		}
	}
}

// interrupt ends a write to dst that is under way; resume allows writes again.
func (f *flow) interrupt() {
	f.interrupted = true
	_ = f.dst.SetWriteDeadline(past)
}

func (f *flow) resume() {
	if f.interrupted {
		f.interrupted = false
		_ = f.dst.SetWriteDeadline(time.Time{})
	}
}

// drain writes what may pass to dst until the flow ends, and answers how; or
// until dst fails; or, with neither, until rest says so while nothing is
// queued. l.mu is held, but let go of meanwhile.
func (l *line) drain(d direction, rest func() bool) (end, err error) {
	f := &l.flows[d]
	for {
		ok, n, again := l.next(d)
		if !ok {
			if len(f.queue) == 0 && rest() {
				return nil, nil
			}
			l.wait(again)
			continue
		}
		if end = f.queue[0].end; end != nil {
			l.pop(d, 0)
			return end, nil
		}
		n, err = l.write(f, f.queue[0].b[:n])
		l.pop(d, n)
		if err != nil {
			return nil, err
		}
	}
}

// write writes b to dst; a part of it, without an error, if it was interrupted.
// l.mu is held, but let go of meanwhile.
func (l *line) write(f *flow, b []byte) (int, error) {
	f.resume()
	f.sending = true
	l.mu.Unlock()
	n, err := f.dst.Write(b)
	l.mu.Lock()
	f.sending = false
	if f.interrupted {
		l.rouse() // whoever interrupted it waits for that
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil
		}
	}
	return n, err
}

// pass hands b on at once if nothing stands in the way, to spare it the queue
// and the change of goroutine. It answers what is left to be queued. l.mu is
// held, but let go of meanwhile.
func (l *line) pass(d direction, b []byte) []byte {
	f := &l.flows[d]
	if !l.wire.plain() || f.dst == nil || f.sending || f.dead || f.ended || len(f.queue) > 0 {
		return b
	}
	n, _ := l.write(f, b) // an error is met again by whoever drains the queue
	return b[n:]
}

// swallowFor is how long what follows a lost reply is lost too, so that no
// part of it is taken for the whole.
const swallowFor = 5 * time.Millisecond

// fill queues what src sends until it ends, which is queued too, or until stop
// says so. It answers the rule that made it lose a reply, if one did. l.mu is
// held, but let go of meanwhile. It may be interrupted by a read deadline.
func (l *line) fill(d direction, src net.Conn, stop func() bool) (robber *force) {
	buf := make([]byte, 32<<10)
	var until time.Time
	for !stop() {
		_ = src.SetReadDeadline(until)
		l.mu.Unlock()
		n, err := src.Read(buf)
		l.mu.Lock()
		if n > 0 && d == in && robber == nil {
			if robber = l.robber(); robber != nil {
				until = time.Now().Add(swallowFor)
			}
		}
		if robber != nil {
			robber.lost.Add(int64(n))
			if err != nil {
				return robber
			}
			continue
		}
		if n > 0 {
			for l.flows[d].size >= limit && !l.flows[d].dead && !stop() {
				l.wait(time.Time{})
			}
			l.push(d, l.pass(d, buf[:n]), nil)
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			l.push(d, nil, err)
			return nil
		}
	}
	return robber
}

func (l *line) robber() *force {
	for _, f := range l.wire.loses {
		if f.catches(l) {
			return f
		}
	}
	return nil
}

// wait returns when the line has changed, or at a time if that is not zero.
// l.mu is held, but let go of meanwhile.
func (l *line) wait(until time.Time) {
	if l.wake == nil {
		l.wake = make(chan struct{})
	}
	wake := l.wake
	l.mu.Unlock()
	expired, stop := timer(until)
	select {
	case <-wake:
	case <-expired:
	}
	stop()
	l.mu.Lock()
}

// rouse lets those who wait look again. l.mu is held.
func (l *line) rouse() {
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
}

// timer is a channel that fires at t, or never for the zero time.
func timer(t time.Time) (<-chan time.Time, func()) {
	if t.IsZero() {
		return nil, func() {}
	}
	tm := time.NewTimer(time.Until(t))
	return tm.C, func() { tm.Stop() }
}

// abort closes a connection as a process does that died with bytes unread: by
// an RST, where there is one.
func abort(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// errReset ends a flow by a reset.
var errReset error = syscall.ECONNRESET
