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

// pair is one connection through a proxy: near is the program that connected,
// far is upstream.
type pair struct {
	line
	proxy             *Proxy
	network, upstream string
	near, far         net.Conn

	// Guarded by line.mu.
	over bool    // everything ends
	shut [2]bool // the end of that direction was passed on
	wg   sync.WaitGroup
}

func newPair(p *Proxy, near net.Conn) *pair {
	c := &pair{proxy: p, near: near, network: "tcp", upstream: p.upstream}
	c.rules, c.serial = &ruleSet{}, p.hub.nextSerial()
	c.flows[in].dst = near
	return c
}

// follow puts the connection under a set of rules.
func (c *pair) follow(s *ruleSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change(s)
}

// sever breaks both ends, each when the rules allow, and reports whether the
// client still used the connection.
func (c *pair) sever() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	inUse := !c.flows[out].ended
	for _, d := range []direction{in, out} {
		c.drop(d)
		c.push(d, nil, errReset)
	}
	return inUse
}

// run forwards until both directions have ended, or one was reset.
func (c *pair) run() {
	defer c.end() // whatever socket is left
	defer context.AfterFunc(c.proxy.ctx, c.end)()
	if c.upstream == "" {
		c.runForDialer()
		return
	}
	if !c.proxy.hub.join(c, established) {
		abort(c.near)
		return
	}
	defer c.proxy.hub.leave(c)
	c.wg.Go(func() { c.receive(out, c.near) })
	switch {
	case !c.admitted():
		abort(c.near)
		c.end()
	case c.connect() != nil:
		c.mu.Lock()
		c.kill(out)
		c.push(in, nil, errReset)
		c.mu.Unlock()
		c.send(in) // the reset, when the rules allow
		c.end()
	default:
		c.forward()
	}
	c.wg.Wait()
}

// runForDialer is run for a dialer, which waits for an answer before it uses the
// connection.
func (c *pair) runForDialer() {
	var err error
	if c.network, c.upstream, err = readRequest(c.near); err != nil {
		return
	}
	if !c.proxy.hub.join(c, connecting) {
		c.answer(syscall.ECONNREFUSED)
		return
	}
	defer c.proxy.hub.leave(c)
	defer c.wg.Wait()
	defer c.end()
	c.wg.Go(func() { c.receive(out, c.near) }) // it may give up
	if !c.admitted() {
		return
	}
	c.delayFirstExchange()
	err = c.connect()
	// A cut that came meanwhile holds back the answer.
	if !c.admitted() {
		return
	}
	if err == nil && !c.proxy.hub.establish(c) {
		err = syscall.ECONNREFUSED
	}
	if c.answer(err); err == nil {
		c.forward()
		c.wg.Wait()
	}
}

func (c *pair) answer(err error) { _, _ = c.near.Write([]byte{answerFor(err)}) }

// forward starts the streams from and to upstream.
func (c *pair) forward() {
	c.wg.Go(func() { c.receive(in, c.far) })
	c.wg.Go(func() { c.send(in) })
	c.wg.Go(func() { c.send(out) })
}

// admitted waits while a rule cuts upstream off. It is false if the client gave
// up meanwhile.
func (c *pair) admitted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	counted := make(map[*activeRule]bool)
	for c.rules.cut && c.wanted() {
		for _, a := range c.rules.list {
			if (a.rule.CutIn || a.rule.CutOut) && !counted[a] {
				counted[a] = true
				a.dials.Add(1)
			}
		}
		c.wait(time.Time{})
	}
	return !c.over && (len(counted) == 0 || !c.flows[out].ended)
}

// wanted reports whether the client still waits for its connection. c.mu is
// held.
func (c *pair) wanted() bool { return !c.over && (c.proxy.upstream != "" || !c.flows[out].ended) }

// delayFirstExchange waits as long as rules delay the first round trip.
func (c *pair) delayFirstExchange() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.rules.late {
		return
	}
	const first = ^uint64(0) // no piece of the streams themselves
	until := time.Now().Add(c.rules.lateness(c.serial<<1|uint64(in), first) + c.rules.lateness(c.serial<<1|uint64(out), first))
	for time.Now().Before(until) && c.rules.late && c.wanted() {
		c.wait(until)
	}
}

// redial is how long the proxy waits before it dials a refusing upstream again.
const redial = 5 * time.Millisecond

// connect dials upstream, for as long as the proxy's patience allows.
func (c *pair) connect() error {
	var d net.Dialer
	if ip := net.ParseIP(c.proxy.From); ip != nil {
		d.LocalAddr = &net.TCPAddr{IP: ip}
	}
	begun := time.Now()
	far, err := d.DialContext(c.proxy.ctx, c.network, c.upstream)
	for errors.Is(err, syscall.ECONNREFUSED) && time.Since(begun) < c.proxy.Patience && c.waitToRedial() {
		far, err = d.DialContext(c.proxy.ctx, c.network, c.upstream)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.far, c.flows[out].dst = far, far
	if c.over {
		_ = far.Close()
		return net.ErrClosed
	}
	return nil
}

// waitToRedial waits until it is time to dial upstream again. It is false if the
// client has given up or a rule has broken the connection by then.
func (c *pair) waitToRedial() bool {
	c.mu.Lock()
	again := time.Now().Add(redial)
	for time.Now().Before(again) && !c.over && !c.flows[out].ended {
		c.wait(again)
	}
	left := !c.over && !c.flows[out].ended
	c.mu.Unlock()
	return left && c.admitted()
}

// end closes both ends at once. The goroutines end with them.
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
	c.wakeAll()
}

func (c *pair) receive(d direction, src net.Conn) {
	c.mu.Lock()
	dropped := c.fill(d, src, func() bool { return c.over })
	c.mu.Unlock()
	if dropped != nil {
		c.proxy.hub.oneLost(c, dropped)
	}
}

// send passes one direction on until it ends.
func (c *pair) send(d direction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &c.flows[d]
	for {
		end, err := c.drain(d, func() bool { return c.over })
		switch {
		case err != nil:
			// The receiver is gone. The sender learns it in order with what else
			// comes from there.
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
