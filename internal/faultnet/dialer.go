package faultnet

import (
	"context"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Dialer opens connections that rules can be put on while they are in use. The
// zero value is ready and passes everything. It is safe for concurrent use, but
// for its fields, which are set before.
//
// It is part of the client: when the client's process is killed, the kernel
// closes its connections, whatever the rules say. Where the server must not
// hear of that, see Proxy.
type Dialer struct {
	// Source is the local address to dial from; nil is the system's choice.
	Source net.IP
	// Via names addresses to dial instead of others. Rules and Peers speak of
	// those that were asked for.
	Via map[string]string

	hub hub
}

// Apply puts a rule in force on the connections to addresses (none: to all),
// present and future, and returns when it is. The addresses are meant as they
// are dialled. It is an error if a rule of that id is in force.
func (d *Dialer) Apply(id string, addresses []string, r Rule) error {
	return d.hub.apply(id, addresses, r)
}

// Lift takes a rule away, and tells what it did. What it held back passes then,
// unless another rule holds it. There need not be such a rule.
func (d *Dialer) Lift(id string) Effect { return d.hub.lift(id) }

// Dial connects to address. Its signature is what drivers take as a dialer.
// The connection implements syscall.Conn. While a rule cuts the address off,
// Dial waits until it is lifted or ctx ends; while a rule makes the address
// late, it takes a round trip longer.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	w, err := d.hub.admit(ctx, network, address)
	if err != nil {
		return nil, err
	}
	serial := d.hub.number()
	if err := roundTrip(ctx, network, w, serial); err != nil {
		return nil, err
	}
	base := net.Dialer{}
	if d.Source != nil && strings.HasPrefix(network, "tcp") {
		base.LocalAddr = &net.TCPAddr{IP: d.Source}
	}
	target := address
	if via, ok := d.Via[address]; ok {
		target = via
	}
	nc, err := base.DialContext(ctx, network, target)
	if err != nil {
		return nil, err // a *net.OpError: it names the address already
	}
	c := newConn(nc, d, address)
	c.serial = serial
	if !d.hub.join(c) {
		abort(nc)
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	// A cut that came meanwhile holds back the answer that it is connected.
	if _, err := d.hub.admit(ctx, network, address); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// roundTrip waits as long as rules make a connection's first exchange late.
func roundTrip(ctx context.Context, network string, w *wire, serial uint64) error {
	if !w.late {
		return nil
	}
	const first = ^uint64(0) // no piece of the streams themselves
	late := w.lateness(serial<<1|uint64(in), first) + w.lateness(serial<<1|uint64(out), first)
	passed, stop := timer(time.Now().Add(late))
	defer stop()
	select {
	case <-passed:
		return nil
	case <-ctx.Done():
		return &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
	}
}

// Open is the number of connections that are open now. One that its user has
// closed does not count, though a rule may hold back its end.
func (d *Dialer) Open() int { return len(d.open()) }

// Peers are the addresses that connections are open to now, as they were
// dialled, sorted, each once.
func (d *Dialer) Peers() []string {
	open := d.open()
	slices.Sort(open)
	return slices.Compact(open)
}

// open lists the addresses of the open connections.
func (d *Dialer) open() []string {
	d.hub.mu.Lock()
	defer d.hub.mu.Unlock()
	var open []string
	for m, used := range d.hub.members {
		if used {
			open = append(open, m.address())
		}
	}
	return open
}
