package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
)

// driver is one client's driver instance, and adds what the driver lacks: calls
// that end with their context, a timeout for a request, and the state of the
// session.
type driver struct {
	cfg    impls.Config
	conn   *zk.Conn
	events <-chan zk.Event

	// turn is held by the request under way. There is never a second one: an
	// abandoned request must end before the next is sent, or it could take effect
	// after the next was answered.
	turn chan struct{}
	// limit is the timer of the request under way.
	limit *time.Timer

	// wait, if not nil, receives the steps of the driver's own lock:
	// StepWaiting when a server has set a watch for it, StepWoken at each event
	// of a node. Steps are dropped while it is full.
	wait chan impls.Step

	watches watchSet // of the session, over all its connections

	life context.Context // ends with Close
	end  context.CancelFunc

	mu      sync.Mutex
	wire    net.Conn      // the newest connection
	session *session      // the newest; nil before the first, or once expired
	ready   chan struct{} // closed, and replaced, at each new session
	timeout time.Duration // as negotiated
	stop    func() bool   // of the timer that runs while disconnected
	dialErr error         // of the newest dial
}

// open connects and waits for the first session. The steps of the driver's own lock
// go to wait, if that is not nil.
func open(ctx context.Context, cfg impls.Config, wait chan impls.Step) (*driver, error) {
	d := &driver{cfg: cfg, wait: wait, turn: make(chan struct{}, 1), limit: time.NewTimer(cfg.Timeout), ready: make(chan struct{}), stop: func() bool { return true }}
	d.life, d.end = context.WithCancel(context.Background())
	hosts := &hosts{}
	conn, events, err := zk.Connect(cfg.Addresses, cfg.TTL,
		zk.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
			return d.dial(hosts, network, address, timeout)
		}),
		zk.WithHostProvider(hosts),
		zk.WithEventCallback(d.event),
		zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		return nil, fmt.Errorf("open a ZooKeeper client: %w", err)
	}
	d.conn, d.events = conn, events
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	if _, err := d.live(ctx); err != nil {
		d.close(false)
		return nil, fmt.Errorf("open a ZooKeeper client on %s: %w", strings.Join(cfg.Addresses, ","), err)
	}
	d.mu.Lock()
	got := d.timeout
	d.mu.Unlock()
	if got != cfg.TTL {
		d.close(true)
		return nil, fmt.Errorf("open a ZooKeeper client: TTL %v: the server makes the session %v; choose a TTL from 2 to 20 of its ticks", cfg.TTL, got)
	}
	return d, nil
}

func (d *driver) dial(h *hosts, network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.life, timeout)
	defer cancel()
	c, err := impls.Encrypted(d.cfg.Dial, d.cfg.TLS)(ctx, network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dialErr = err
	if err != nil {
		return nil, err
	}
	if d.life.Err() != nil {
		_ = c.Close()
		return nil, d.life.Err()
	}
	d.wire = c
	return &frameObserver{
		Conn:    c,
		now:     func() time.Time { return impls.Monotonic(d.cfg.Clock) },
		connect: func(sent time.Time, timeout time.Duration, id int64) { d.connected(h, sent, timeout, id) },
		replied: d.replied,
		watches: &d.watches, patience: d.cfg.Timeout,
	}, nil
}

// connected records a server's answer to the connect packet: our session, a new
// one, or (id 0) that ours has expired.
func (d *driver) connected(h *hosts, sent time.Time, timeout time.Duration, id int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop()
	if id == 0 {
		h.Connected() // the server works: request a new session at once
	}
	old := d.session
	if old != nil && old.id != id && !old.isLost() {
		old.holds.Renewed(&d.cfg, sent, fmt.Errorf("%w: the session has expired", impls.ErrLost))
		old.lose()
	}
	switch {
	case id == 0:
		d.session = nil
	case old != nil && old.id == id && !old.isLost():
		old.confirmed(sent.Add(timeout))
		old.holds.Renewed(&d.cfg, sent, nil)
	default:
		// Also if the servers still have a session that we declared lost: its holds
		// stay lost.
		d.session, d.timeout = newSession(id, sent.Add(timeout)), timeout
		close(d.ready)
		d.ready = make(chan struct{})
	}
}

const (
	// opGetData is the request with which the driver's own lock watches a node.
	opGetData = 4
	// opPing is the request with which the driver renews a session, three times per
	// timeout, whatever else it sends.
	opPing = 11
)

func (d *driver) replied(sent time.Time, opcode, code int32) {
	d.mu.Lock()
	s, timeout := d.session, d.timeout
	d.mu.Unlock()
	if s != nil {
		s.confirmed(sent.Add(timeout))
		if opcode == opPing && code == 0 {
			s.holds.Renewed(&d.cfg, sent, nil)
		}
	}
	if opcode == opGetData && code == 0 {
		d.pass(impls.StepWaiting)
	}
}

func (d *driver) pass(s impls.Step) {
	select {
	case d.wait <- s:
	default:
	}
}

// event is called by the driver with every event. While disconnected no server can
// report that the session expired: a timer closes it at its end.
func (d *driver) event(e zk.Event) {
	if e.Type > 0 { // of a node; events of the session and of ended watches are negative
		d.pass(impls.StepWoken)
	}
	if e.Type != zk.EventSession || e.State != zk.StateDisconnected {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.session; s != nil && !s.isLost() {
		d.stop()
		d.stop = d.cfg.Clock.AfterFunc(s.leaseEnd().Sub(impls.Monotonic(d.cfg.Clock)), s.lose)
	}
}

// current returns the newest session, or nil.
func (d *driver) current() *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.session
}

// live waits for a session that is not lost.
func (d *driver) live(ctx context.Context) (*session, error) {
	for {
		d.mu.Lock()
		s, ready := d.session, d.ready
		d.mu.Unlock()
		if s != nil && !s.isLost() {
			return s, nil
		}
		select {
		case <-ready:
		case <-ctx.Done():
			d.mu.Lock()
			defer d.mu.Unlock()
			return nil, errors.Join(fmt.Errorf("no session: %w", ctx.Err()), d.dialErr)
		}
	}
}

// do executes one request f of the driver. A request that is not answered
// within the request timeout loses its connection, which ends it; the driver
// reconnects with the same session.
//
// It is called by one goroutine at a time. Every call passes through it, so it
// creates neither a context nor a timer on success.
func do[T any](ctx context.Context, d *driver, f func(*zk.Conn) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, impls.NotSent(err)
	}
	d.limit.Reset(d.cfg.Timeout)
	defer d.limit.Stop()
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return none, impls.NotSent(ctx.Err())
	case <-d.limit.C:
		return none, impls.NotSent(context.DeadlineExceeded)
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f(d.conn)
		<-d.turn
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		if r.err == nil {
			return r.value, nil
		}
		return r.value, rules().Outcome(r.err)
	case <-d.limit.C:
		d.cut()
		return none, rules().Outcome(context.DeadlineExceeded)
	case <-ctx.Done():
		// The request is abandoned; it ends with its answer or its timeout.
		go func() {
			select {
			case <-done:
			case <-time.After(d.cfg.Timeout):
				d.cut()
			}
		}()
		return none, rules().Outcome(ctx.Err())
	}
}

// cut closes the connection; the driver opens another.
func (d *driver) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wire != nil {
		_ = d.wire.Close()
	}
}

// close ends the driver, and the session with its nodes only if session is set. The
// driver's own Close always ends the session, so its connection is closed first.
func (d *driver) close(session bool) {
	if session {
		d.conn.Close()
	}
	d.end()
	d.cut()
	// Without a connection it waits a second for an answer that cannot come.
	go d.conn.Close()
	for range d.events {
		// Until the driver has stopped.
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop()
}

// hosts returns the servers in turn. The driver pauses for a second, and fails its
// unsent requests, after it has tried all servers without success; its own host
// provider would make it pause after every lost connection to a single server too.
type hosts struct {
	mu      sync.Mutex
	servers []string
	next    int
	tried   int // since the last success
}

func (h *hosts) Init(servers []string) error {
	h.servers = servers
	return nil
}

func (h *hosts) Len() int { return len(h.servers) }

func (h *hosts) Next() (server string, retryStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next%len(h.servers)]
	h.next++
	h.tried++
	return server, h.tried > len(h.servers)
}

func (h *hosts) Connected() {
	h.mu.Lock()
	h.tried = 0
	h.mu.Unlock()
}

// silent discards the driver's log: errors are returned.
type silent struct{}

func (silent) Printf(string, ...any) {}
