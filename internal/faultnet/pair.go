package faultnet

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// pair is one connection through a proxy: near is whoever connected, far is
// upstream.
type pair struct {
	line
	proxy     *Proxy
	near, far net.Conn

	// Guarded by line.mu.
	over bool    // everything ends
	shut [2]bool // the end of that direction was passed on
	wg   sync.WaitGroup
}

func newPair(p *Proxy, near net.Conn) *pair {
	c := &pair{proxy: p, near: near}
	c.wire, c.serial = &wire{}, p.hub.number()
	c.flows[in].dst = near
	return c
}

func (c *pair) address() string { return c.proxy.upstream }

func (c *pair) follow(w *wire) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change(w)
}

// sever breaks both ends, each when the rules allow.
func (c *pair) sever() (broke, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false, false
	}
	for _, d := range []direction{in, out} {
		c.drop(d)
		c.push(d, nil, errReset)
	}
	return true, false
}

// run forwards until both directions have ended, or one was reset.
func (c *pair) run() {
	if !c.proxy.hub.join(c) {
		abort(c.near)
		return
	}
	defer c.proxy.hub.leave(c)
	defer context.AfterFunc(c.proxy.ctx, c.end)()
	c.wg.Go(func() { c.receive(out, c.near) })
	switch {
	case !c.admitted():
		abort(c.near)
		c.end()
	case !c.connect():
		c.send(in) // of the failure, when the rules allow
		c.end()
	default:
		c.wg.Go(func() { c.receive(in, c.far) })
		c.wg.Go(func() { c.send(in) })
		c.wg.Go(func() { c.send(out) })
	}
	c.wg.Wait()
	c.end() // whatever socket is left
}

// admitted waits out what cuts upstream off. It is false if nobody is left to
// connect by then.
func (c *pair) admitted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var seen callers
	for c.wire.cut && !c.over {
		seen.count(c.wire)
		c.wait(time.Time{})
	}
	return !c.over && (seen == nil || !c.flows[out].ended)
}

// redial is how often an upstream that refuses is dialled again.
const redial = 5 * time.Millisecond

// connect dials upstream, as patiently as the proxy is. Whoever connected sees a
// failure as a reset.
func (c *pair) connect() bool {
	var d net.Dialer
	if ip := net.ParseIP(c.proxy.From); ip != nil {
		d.LocalAddr = &net.TCPAddr{IP: ip}
	}
	begun := time.Now()
	far, err := d.DialContext(c.proxy.ctx, "tcp", c.proxy.upstream)
	for errors.Is(err, syscall.ECONNREFUSED) && time.Since(begun) < c.proxy.Patience && c.stays() {
		far, err = d.DialContext(c.proxy.ctx, "tcp", c.proxy.upstream)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.kill(out)
		c.push(in, nil, errReset)
		return false
	}
	c.far, c.flows[out].dst = far, far
	if c.over {
		_ = far.Close()
	}
	return !c.over
}

// stays waits until it is time to dial upstream again, and tells whether anybody
// is left to connect by then, whom no rule has broken.
func (c *pair) stays() bool {
	c.mu.Lock()
	again := time.Now().Add(redial)
	for time.Now().Before(again) && !c.over && !c.flows[out].ended {
		c.wait(again)
	}
	left := !c.over && !c.flows[out].ended
	c.mu.Unlock()
	return left && c.admitted()
}

// end closes both ends at once. The goroutines end of that.
func (c *pair) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for d := range c.flows {
		c.kill(direction(d))
	}
	_ = c.near.Close()
	if c.far != nil {
		_ = c.far.Close()
	}
	c.rouse()
}

func (c *pair) receive(d direction, src net.Conn) {
	c.mu.Lock()
	robber := c.fill(d, src, func() bool { return c.over })
	c.mu.Unlock()
	if robber != nil {
		c.proxy.hub.robbed(c, robber)
	}
}

// send sends what one end sends to the other.
func (c *pair) send(d direction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &c.flows[d]
	for {
		end, err := c.drain(d, func() bool { return c.over })
		switch {
		case err != nil:
			// The receiver is gone. The sender hears of that like of anything else
			// that comes from there.
			c.kill(d)
			c.push(1-d, nil, errReset)
		case end == io.EOF:
			if half, ok := f.dst.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
			if c.shut[d] = true; c.shut[1-d] {
				c.mu.Unlock()
				c.end()
				c.mu.Lock()
				return
			}
			continue // a reset may follow
		case end != nil:
			abort(f.dst)
		}
		return
	}
}
