package faultnet

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// Proxy forwards connections under rules, either to one upstream address (Listen,
// NewProxy) or to the addresses that a Dialer names (ListenDialer).
//
// In is the direction from upstream, Out the direction to it. The end of one
// direction is passed on as such. A dialer sees a rule as a direct dial would. A
// program that connects without one is always accepted, since the kernel does
// that: while a rule cuts upstream off, upstream is not dialled, nor afterwards
// if the program has given up by then; a refused program is reset at once. A
// Proxy is safe for concurrent use.
type Proxy struct {
	// Patience is how long the proxy dials again while upstream refuses, before
	// it resets the connection; set it before use. Some programs retry after a
	// refused connection, but not after a reset. 0: do not dial again.
	Patience time.Duration

	// From is the address, without a port, to dial upstream from; set it before
	// use. "": the system chooses.
	From string

	upstream string // "": a dialer names it
	listener net.Listener
	hub      hub
	ctx      context.Context // ends with the proxy
	cancel   context.CancelFunc

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// NewProxy makes a proxy that does not listen: it forwards the connections given
// to Serve.
func NewProxy(upstream string) *Proxy {
	p := &Proxy{upstream: upstream}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Listen starts a proxy that accepts connections at an address, as of
// net.Listen: port 0 chooses one.
func Listen(listen, upstream string) (*Proxy, error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("listen for a proxy of %s: %w", upstream, err)
	}
	p := NewProxy(upstream)
	p.listener = l
	p.wg.Go(p.accept)
	return p, nil
}

// ListenDialer starts a proxy on the loopback for the Dialer of one client.
func ListenDialer() (*Proxy, error) { return Listen("127.0.0.1:0", "") }

// Addr is the address that the proxy listens at, or "".
func (p *Proxy) Addr() string {
	if p.listener == nil {
		return ""
	}
	return p.listener.Addr().String()
}

// Apply puts a rule in force on the connections to addresses (none: to all),
// present and future, and returns when it is. It is an error if a rule with that
// id is in force.
func (p *Proxy) Apply(id string, r Rule, addresses ...string) error {
	return p.hub.apply(id, addresses, r)
}

// Lift removes a rule, if there is one, and returns what it did. What the rule
// held back passes then, unless another rule holds it.
func (p *Proxy) Lift(id string) Effect { return p.hub.lift(id) }

// Effect returns what a rule in force has done so far.
func (p *Proxy) Effect(id string) Effect { return p.hub.effect(id) }

// Close ends the proxy and all its connections, whatever the rules, and returns
// when all its goroutines have ended.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	var err error
	if p.listener != nil {
		err = p.listener.Close()
	}
	p.wg.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err == nil {
			p.Serve(c)
			continue
		}
		// Out of descriptors, or the like: that connection is lost.
		expired, stop := timer(time.Now().Add(10 * time.Millisecond))
		select {
		case <-expired:
		case <-p.ctx.Done():
		}
		stop()
		if p.ctx.Err() != nil {
			return
		}
	}
}

// Serve forwards one connection, which belongs to the proxy from now on, and
// returns at once.
func (p *Proxy) Serve(near net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		abort(near)
		return
	}
	p.wg.Go(func() { newPair(p, near).run() })
}
