package faultnet

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// Proxy forwards TCP connections to one upstream address, under rules. It does
// for a connection what a Dialer does, but outlives the client: a client that is
// killed while it is cut off stays connected for the server until the rule is
// lifted. It costs each message a hop more, so it is for where that is needed.
//
// In is from upstream to whoever connected, Out the other way. The end of one
// direction is passed on as that. What differs from a Dialer's rules: somebody
// who connects while upstream is cut off is accepted, since the kernel does
// that, but upstream is dialled only when the rule is lifted, and not at all if
// he has given up by then, with what he had sent; refused is who is reset at
// once. It is safe for concurrent use.
type Proxy struct {
	// Patience is how long an upstream that refuses is dialled again before
	// whoever connected sees a reset; set before use. To connect to a proxy
	// always succeeds, and some would have tried again after a refusal who do not
	// after a reset. 0: not at all.
	Patience time.Duration

	// From is the address, without a port, that upstream is dialled from; set
	// before use. "": as the system chooses.
	From string

	upstream string
	listener net.Listener
	hub      hub
	ctx      context.Context // ends with the proxy
	cancel   context.CancelFunc

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// NewProxy makes a proxy that does not listen: what it forwards is given to
// Serve.
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

// Addr is the address that the proxy listens at, or "".
func (p *Proxy) Addr() string {
	if p.listener == nil {
		return ""
	}
	return p.listener.Addr().String()
}

// Apply puts a rule in force on all connections, present and future, and
// returns when it is. It is an error if a rule of that id is in force.
func (p *Proxy) Apply(id string, r Rule) error { return p.hub.apply(id, nil, r) }

// Lift takes a rule away, and tells what it did. There need not be such a rule.
func (p *Proxy) Lift(id string) Effect { return p.hub.lift(id) }

// Close ends the proxy and all its connections, whatever the rules, and returns
// when nothing of it runs any more.
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
		if err != nil {
			if p.ctx.Err() != nil {
				return
			}
			p.breathe() // out of descriptors, or the like: that connection is lost
			continue
		}
		p.Serve(c)
	}
}

// breathe waits a little, or until the proxy ends.
func (p *Proxy) breathe() {
	passed, stop := timer(time.Now().Add(10 * time.Millisecond))
	defer stop()
	select {
	case <-passed:
	case <-p.ctx.Done():
	}
}

// Serve forwards one connection, which is the proxy's from now on, and returns
// at once.
func (p *Proxy) Serve(near net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		abort(near)
		return
	}
	p.wg.Go(func() { newPair(p, near).run() })
}
