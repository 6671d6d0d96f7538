package faultnet

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// Mode is a lasting state of a dialer's network.
type Mode int32

// The modes. Pass is the zero value: everything works.
const (
	Pass Mode = iota
	// Stall: reads, writes and new dials wait until the mode changes, their
	// deadline passes or the connection is closed, as if packets got lost.
	// What was on its way arrives afterwards.
	Stall
	// Refuse: new dials fail with ECONNREFUSED; what is connected goes on.
	Refuse
)

// Dialer opens connections that can be faulted later. The zero value is ready
// and passes everything. It is safe for concurrent use.
type Dialer struct {
	mu      sync.Mutex
	mode    Mode
	conns   map[*conn]struct{}
	changed chan struct{} // closed at the next change of mode; nil while nobody waits
}

// Dial connects to address. Its signature is what drivers take as a dialer.
// The connection implements syscall.Conn.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := d.admit(ctx, network); err != nil {
		return nil, err
	}
	var base net.Dialer
	nc, err := base.DialContext(ctx, network, address)
	if err != nil {
		return nil, err // a *net.OpError: it names the address already
	}
	c := &conn{Conn: nc, dialer: d, wake: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conns == nil {
		d.conns = make(map[*conn]struct{})
	}
	d.conns[c] = struct{}{}
	c.mode.Store(int32(d.mode))
	return c, nil
}

// admit waits out a stall and refuses what is to be refused.
func (d *Dialer) admit(ctx context.Context, network string) error {
	for {
		d.mu.Lock()
		mode := d.mode
		if d.changed == nil {
			d.changed = make(chan struct{})
		}
		changed := d.changed
		d.mu.Unlock()
		switch mode {
		case Pass:
			return nil
		case Refuse:
			return &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
		}
	}
}

// Set changes the mode of all connections, present and future. Set(Pass)
// heals.
func (d *Dialer) Set(m Mode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mode = m
	for c := range d.conns {
		c.set(m)
	}
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
}

// Reset breaks every present connection as a peer does that died: TCP ones
// with an RST. Calls under way and later ones fail with ECONNRESET. New dials
// are not touched. It returns the number of connections it broke.
func (d *Dialer) Reset() int {
	d.mu.Lock()
	conns := d.conns
	d.conns = nil
	d.mu.Unlock()
	for c := range conns {
		c.reset()
	}
	return len(conns)
}

// Open is the number of connections that are open now.
func (d *Dialer) Open() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns)
}

func (d *Dialer) forget(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
}

// timer is a channel that fires at t, or never for the zero time.
func timer(t time.Time) (<-chan time.Time, func()) {
	if t.IsZero() {
		return nil, func() {}
	}
	tm := time.NewTimer(time.Until(t))
	return tm.C, func() { tm.Stop() }
}
