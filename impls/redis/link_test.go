package redis_test

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/lockbench/lockbench/impls"
)

// link is a client's network, whose writes can be held back, and whose
// connections can be refused.
type link struct {
	mu      sync.Mutex
	held    chan struct{} // nil: writes go through
	waiting chan struct{} // gets an element per write that is held back
	cut     bool
	conns   []net.Conn
}

var errCut = errors.New("cut off, by the test's will")

func (l *link) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, errCut
	}
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.conns = append(l.conns, c)
	return &heldConn{c, l}, nil
}

// hold holds writes back until what it returns is called.
func (l *link) hold() (letGo func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := make(chan struct{})
	l.held, l.waiting = held, make(chan struct{}, 10)
	return func() {
		l.mu.Lock()
		l.held = nil
		l.mu.Unlock()
		close(held)
	}
}

// setCut ends all connections and refuses new ones, or no longer does.
func (l *link) setCut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

type heldConn struct {
	net.Conn
	link *link
}

func (c *heldConn) Write(b []byte) (int, error) {
	c.link.mu.Lock()
	held, waiting := c.link.held, c.link.waiting
	c.link.mu.Unlock()
	if held != nil {
		waiting <- struct{}{}
		<-held
	}
	return c.Conn.Write(b)
}

// through sets the client's network.
func through(l *link) func(*impls.Config) {
	return func(cfg *impls.Config) { cfg.Dial = l.dial }
}
