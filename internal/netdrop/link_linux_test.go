package netdrop

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func listen(t *testing.T) (*net.TCPListener, netip.AddrPort) {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	a := l.Addr().(*net.TCPAddr).AddrPort()
	return l, netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

func client(n byte) netip.Addr { return netip.AddrFrom4([4]byte{127, 77, 0, n}) }

func dial(ctx context.Context, from netip.Addr, to netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	return d.DialContext(ctx, "tcp4", to.String())
}

// link is a connection, seen from both its ends.
type link struct{ client, server *net.TCPConn }

func connect(t *testing.T, l *net.TCPListener, from netip.Addr) link {
	t.Helper()
	to := l.Addr().(*net.TCPAddr).AddrPort()
	c, err := dial(t.Context(), from, netip.AddrPortFrom(to.Addr().Unmap(), to.Port()))
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return link{c.(*net.TCPConn), s}
}

func send(t *testing.T, from net.Conn) {
	t.Helper()
	if _, err := from.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, at net.Conn) {
	t.Helper()
	_ = at.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(at, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

// passes wants a byte to pass both ways.
func (l link) passes(t *testing.T) {
	t.Helper()
	send(t, l.client)
	receive(t, l.server)
	send(t, l.server)
	receive(t, l.client)
}

// info is what the kernel knows of a connection's end.
func info(t *testing.T, c *net.TCPConn) (i *unix.TCPInfo) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	ctlErr := raw.Control(func(fd uintptr) { i, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err := errors.Join(ctlErr, err); err != nil {
		t.Fatal(err)
	}
	return i
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// resent waits until an end has sent again what was not acknowledged: by then it
// would have come, were there no cut.
func resent(t *testing.T, c *net.TCPConn, times uint32) {
	t.Helper()
	await(t, "sending again", func() bool { return info(t, c).Total_retrans >= times })
}
