package faultnet

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// childVar makes a copy of the test binary a client that can be killed. It is
// the address to dial, or "PROXY ADDRESS" to dial through a proxy.
const childVar = "FAULTNET_TEST_CLIENT"

func TestMain(m *testing.M) {
	if address := os.Getenv(childVar); address != "" {
		if err := client(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	if code == 0 && !eventually(func() bool { return runtime.NumGoroutine() <= before }) {
		buf := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", buf[:runtime.Stack(buf, true)])
		code = 1
	}
	os.Exit(code)
}

// client sends hello to a server, reports to its parent, and stays until its
// parent ends or kills it.
func client(address string) error {
	var d Dialer
	if proxy, target, ok := strings.Cut(address, " "); ok {
		d.Proxy, address = proxy, target
	}
	c, err := d.Dial(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(c, "hello"); err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// eventually reports whether ok comes true in a time that only a bug exceeds.
func eventually(ok func() bool) bool {
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !eventually(ok) {
		t.Fatalf("timed out: %s", what)
	}
}

// faultyServer is a server, and a faulty way to it.
type faultyServer struct {
	t        *testing.T
	listener net.Listener
	dial     func() (net.Conn, error)
	apply    func(id string, r Rule) error
	lift     func(id string) Effect
}

// eachWay runs f with a dialer through a proxy, and with a proxy of one upstream.
func eachWay(t *testing.T, f func(t *testing.T, r *faultyServer)) {
	t.Run("dialer", func(t *testing.T) {
		r := newServer(t)
		d, p := dialer(t)
		r.dial = func() (net.Conn, error) { return d.Dial(t.Context(), "tcp", r.listener.Addr().String()) }
		r.apply = func(id string, rule Rule) error { return p.Apply(id, rule) }
		r.lift = p.Lift
		f(t, r)
	})
	t.Run("proxy", func(t *testing.T) {
		r := newServer(t)
		p := listen(t, r.listener.Addr().String())
		r.dial = func() (net.Conn, error) { return net.Dial("tcp", p.Addr()) }
		r.apply = func(id string, rule Rule) error { return p.Apply(id, rule) }
		r.lift = p.Lift
		f(t, r)
	})
}

// dialer returns a dialer and the proxy that it dials through.
func dialer(t *testing.T) (*Dialer, *Proxy) {
	t.Helper()
	p := listen(t, "")
	return &Dialer{Proxy: p.Addr()}, p
}

func newServer(t *testing.T) *faultyServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &faultyServer{t: t, listener: l}
}

func listen(t *testing.T, upstream string) *Proxy {
	t.Helper()
	p, err := Listen("127.0.0.1:0", upstream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// connect returns both ends of a new connection.
func (r *faultyServer) connect() (near, far net.Conn) {
	r.t.Helper()
	near, err := r.dial()
	if err != nil {
		r.t.Fatal(err)
	}
	return near, r.accept(near)
}

// accept is the server's end of a connection.
func (r *faultyServer) accept(near net.Conn) net.Conn {
	r.t.Helper()
	far, err := r.listener.Accept()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		far.Close()
		if near != nil { // else it is of another process
			near.Close()
		}
	})
	return far
}

func (r *faultyServer) put(id string, rule Rule) {
	r.t.Helper()
	if err := r.apply(id, rule); err != nil {
		r.t.Fatal(err)
	}
}

// silent shows that nothing comes: no byte, no end.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n > 0 || !os.IsTimeout(err) {
		t.Fatalf("read %d bytes, %v; want silence", n, err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

// ends shows that a connection ends with an error, which may be EOF, and that no
// byte comes before.
func ends(t *testing.T, c net.Conn, want error) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n > 0 || !is(err, want) {
		t.Fatalf("read %d bytes, %v; want %v", n, err, want)
	}
}
