package faultnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Dialer opens the connections of one client. They are the system's own, and no
// code of this package handles their data; through a proxy they only have the
// server's address as that of their peer. It is safe for concurrent use, but
// its fields must be set before. The zero value dials directly.
type Dialer struct {
	// Source is the local address to dial from; nil lets the system choose. It
	// is not used with a proxy.
	Source net.IP
	// Proxy is the address of a proxy made by ListenDialer; "" dials directly.
	Proxy string

	mu      sync.Mutex
	conns   []dialed // may contain connections that were closed since
	pruneAt int      // length of conns at which closed ones are removed
}

type dialed struct {
	conn    net.Conn
	address string // as given to Dial
}

// Dial connects to address. Its signature is the one that drivers take. Through
// a proxy it returns the errors of a direct dial: it waits while a rule cuts the
// address off, and is refused while a rule or the server refuses.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var (
		base net.Dialer
		c    net.Conn
		err  error
	)
	if d.Proxy != "" {
		c, err = d.dialThrough(ctx, network, address)
	} else {
		if d.Source != nil && strings.HasPrefix(network, "tcp") {
			base.LocalAddr = &net.TCPAddr{IP: d.Source}
		}
		c, err = base.DialContext(ctx, network, address)
	}
	if err != nil {
		return nil, err // a *net.OpError
	}
	d.remember(c, address)
	return c, nil
}

// dialThrough connects to the proxy and asks it to connect to address.
func (d *Dialer) dialThrough(ctx context.Context, network, address string) (net.Conn, error) {
	var base net.Dialer
	c, err := base.DialContext(ctx, "tcp", d.Proxy)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(past) })
	err = askFor(c, network, address)
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Close()
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	return &throughProxy{c.(*net.TCPConn), serverAddr{network, address}}, nil
}

// throughProxy names the server and not the proxy as its peer: a driver may dial
// that address again, to cancel a statement for example.
type throughProxy struct {
	*net.TCPConn
	server serverAddr
}

func (c *throughProxy) RemoteAddr() net.Addr { return c.server }

type serverAddr struct{ network, address string }

func (a serverAddr) Network() string { return a.network }
func (a serverAddr) String() string  { return a.address }

// askFor is the dialer's side of the request that readRequest reads. The proxy
// answers with one byte when the connection is there: 0, or an errno.
func askFor(c net.Conn, network, address string) error {
	if _, err := fmt.Fprintf(c, "%s %s\n", network, address); err != nil {
		return err
	}
	var answer [1]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return err
	}
	if answer[0] != 0 {
		return syscall.Errno(answer[0])
	}
	return nil
}

// maxRequest limits the length of a dialer's request.
const maxRequest = 4096

// readRequest reads the network and address that a dialer wants. It reads byte
// by byte, so that it takes nothing of what follows.
func readRequest(c net.Conn) (network, address string, err error) {
	var line []byte
	for b := make([]byte, 1); len(line) < maxRequest; line = append(line, b[0]) {
		if _, err := io.ReadFull(c, b); err != nil {
			return "", "", err
		}
		if b[0] == '\n' {
			network, address, ok := strings.Cut(string(line), " ")
			if !ok {
				break
			}
			return network, address, nil
		}
	}
	return "", "", errors.New("not a request of a dialer")
}

// answerFor is the byte that reports the result of a dial.
func answerFor(err error) byte {
	var errno syscall.Errno
	var timeout net.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &errno):
		return byte(errno)
	case errors.As(err, &timeout) && timeout.Timeout():
		return byte(syscall.ETIMEDOUT)
	}
	return byte(syscall.EHOSTUNREACH)
}

// remember keeps a connection for Peers.
func (d *Dialer) remember(c net.Conn, address string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.conns) >= d.pruneAt {
		d.prune()
		d.pruneAt = 2*len(d.conns) + 8
	}
	d.conns = append(d.conns, dialed{c, address})
}

// prune removes the connections that the client has closed. d.mu is held.
func (d *Dialer) prune() {
	d.conns = slices.DeleteFunc(d.conns, func(x dialed) bool { return !isOpen(x.conn) })
}

// isOpen reports whether the client has not closed a connection.
func isOpen(c net.Conn) bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	return err == nil && raw.Control(func(uintptr) {}) == nil
}

// Peers returns the addresses of the connections that are open now, as given to
// Dial, sorted, each once.
func (d *Dialer) Peers() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.prune()
	var list []string
	for _, x := range d.conns {
		list = append(list, x.address)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)
