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
// buffers of a kernel. A sender of more has to wait.
const limit = 256 << 10

// line connects the two ends of a connection by a queue in each direction.
// Everything is guarded by mu.
type line struct {
	mu     sync.Mutex
	wake   chan struct{} // closed when the line has changed; nil while no goroutine waits
	rules  *ruleSet
	serial uint64 // of the connection
	flows  [2]flow
}

// flow is one direction.
type flow struct {
	queue []chunk
	size  int      // bytes in the queue
	count uint64   // chunks so far
	dst   net.Conn // what drain writes to
	// sending: a write to dst is under way; interrupted: dst has a write deadline
	// in the past, to end it.
	sending, interrupted bool
	ended                bool // only a reset can follow
	dead                 bool // nothing can be delivered any more
	// How many bytes the rate lets pass next, and when.
	portion int
	ready   time.Time
}

// chunk is bytes, or the end of a flow.
type chunk struct {
	b   []byte
	due time.Time // valid while a rule delays
	end error
}

// push queues bytes that came, or an end. l.mu is held.
func (l *line) push(d direction, b []byte, end error) {
	f := &l.flows[d]
	if len(b) == 0 && end == nil || f.dead || f.ended && (end == nil || end == io.EOF) {
		return
	}
	c := chunk{b: append([]byte(nil), b...), end: end}
	if l.rules.late {
		c.due = time.Now().Add(l.rules.lateness(l.serial<<1|uint64(d), f.count))
	}
	l.rules.count(d, len(b))
	if d == out && len(b) > 0 {
		for _, f := range l.rules.loses {
			f.noteWrite(l)
		}
	}
	f.queue, f.size, f.count, f.ended = append(f.queue, c), f.size+len(b), f.count+1, f.ended || end != nil
	l.wakeAll()
}

// next returns what may pass now: n bytes of the first chunk, or its end. If
// nothing may, again is when to look again, zero for when the line changes.
// l.mu is held.
func (l *line) next(d direction) (ok bool, n int, again time.Time) {
	f := &l.flows[d]
	if len(f.queue) == 0 || l.rules.held[d] {
		return false, 0, time.Time{}
	}
	c, now := &f.queue[0], time.Now()
	if l.rules.late && now.Before(c.due) {
		return false, 0, c.due
	}
	if l.rules.rate == 0 || c.end != nil {
		f.portion, f.ready = 0, time.Time{}
		return true, len(c.b), time.Time{}
	}
	if f.portion == 0 {
		// A fiftieth of a second's worth at a time, so that it trickles.
		f.portion = min(len(c.b), int(max(1, l.rules.rate/50)))
		f.ready = l.rules.reserve(d, f.portion, now)
	}
	if now.Before(f.ready) {
		return false, 0, f.ready
	}
	return true, min(f.portion, len(c.b)), time.Time{}
}

// pop removes n bytes of the first chunk, or its end. l.mu is held.
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
	l.wakeAll()
}

// drop empties a queue. l.mu is held.
func (l *line) drop(d direction) {
	f := &l.flows[d]
	f.queue, f.size, f.portion = nil, 0, 0
	l.wakeAll()
}

// kill marks a direction in which nothing can be delivered any more. l.mu is held.
func (l *line) kill(d direction) {
	l.flows[d].dead = true
	l.drop(d)
}

// change puts the line under a set of rules, which are in force when it
// returns. l.mu is held, but released meanwhile.
func (l *line) change(s *ruleSet) {
	old := l.rules
	l.rules = s
	for d := range l.flows {
		f := &l.flows[d]
		if s.held[d] && !old.held[d] && f.size > 0 {
			for _, by := range s.list {
				if by.holds(direction(d)) {
					by.held.Add(int64(f.size))
				}
			}
		}
	}
	l.wakeAll()
	for d := range l.flows {
		f := &l.flows[d]
		if s.held[d] && f.sending {
			f.interrupt()
			for f.sending {
				l.wait(time.Time{})
			}
		}
	}
}

// interrupt ends the write to dst that is under way; resume allows writes again.
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

// drain writes what may pass to dst until the flow ends, and returns its end;
// or until dst fails; or, with neither, until rest returns true while nothing
// is queued. l.mu is held, but released meanwhile.
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
// l.mu is held, but released meanwhile.
func (l *line) write(f *flow, b []byte) (int, error) {
	f.resume()
	f.sending = true
	l.mu.Unlock()
	n, err := f.dst.Write(b)
	l.mu.Lock()
	f.sending = false
	if f.interrupted {
		l.wakeAll() // change waits for it
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil
		}
	}
	return n, err
}

// pass writes b at once if no rule or queue is in the way, which saves a change
// of goroutine. It returns what is left to be queued. l.mu is held, but released
// meanwhile.
func (l *line) pass(d direction, b []byte) []byte {
	f := &l.flows[d]
	if !l.rules.empty() || f.dst == nil || f.sending || f.dead || f.ended || len(f.queue) > 0 {
		return b
	}
	n, _ := l.write(f, b) // drain meets the error again
	return b[n:]
}

// swallowFor is how long the bytes after a lost request or reply are lost too, so
// that no part of it arrives.
const swallowFor = 5 * time.Millisecond

// fill queues what src sends until it ends, which is queued too, or until stop
// returns true. If a rule lost what came, fill ends and returns that rule. l.mu is
// held, but released meanwhile.
func (l *line) fill(d direction, src net.Conn, stop func() bool) (dropRule *activeRule) {
	buf := make([]byte, 32<<10)
	for !stop() {
		l.mu.Unlock()
		n, err := src.Read(buf)
		l.mu.Lock()
		if n > 0 && dropRule == nil {
			if dropRule = l.dropRule(d); dropRule != nil {
				_ = src.SetReadDeadline(time.Now().Add(swallowFor))
			}
		}
		if dropRule != nil {
			dropRule.lost.Add(int64(n))
			if err != nil {
				return dropRule
			}
			continue
		}
		if n > 0 {
			for l.flows[d].size >= limit && !l.flows[d].dead && !stop() {
				l.wait(time.Time{})
			}
			l.push(d, l.pass(d, buf[:n]), nil)
		}
		if err != nil {
			l.push(d, nil, err)
			return nil
		}
	}
	return dropRule
}

// dropRule returns the rule that loses the bytes that come now, or nil.
func (l *line) dropRule(d direction) *activeRule {
	for _, a := range l.rules.loses {
		if a.takes(l, d) {
			return a
		}
	}
	return nil
}

// wait returns when the line has changed, or at a time if that is not zero.
// l.mu is held, but released meanwhile.
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

// wakeAll ends every wait. l.mu is held.
func (l *line) wakeAll() {
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
}

// timer returns a channel that fires at t, or never for the zero time.
func timer(t time.Time) (<-chan time.Time, func()) {
	if t.IsZero() {
		return nil, func() {}
	}
	tm := time.NewTimer(time.Until(t))
	return tm.C, func() { tm.Stop() }
}

// abort closes a connection by a reset, where the network has one.
func abort(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// errReset ends a flow by a reset.
var errReset error = syscall.ECONNRESET
