package faultnet

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

// childVar names what a copy of the test binary dials and then holds on to, as
// a client that can be killed; with "cut:" before the address it cuts itself
// off by its own dialer.
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

// client says hello to a server, tells its parent, and stays until its parent
// ends or ends it.
func client(address string) error {
	var d Dialer
	cut := false
	if len(address) > 4 && address[:4] == "cut:" {
		address, cut = address[4:], true
	}
	c, err := d.Dial(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(c, "hello"); err != nil {
		return err
	}
	if cut {
		if err := d.Apply("cut", nil, Rule{CutIn: true, CutOut: true}); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// eventually tells whether ok comes true in a time that only a bug exceeds.
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
		t.Fatalf("it never came that %s", what)
	}
}

// rig is a server, and a way to it that can be faulted.
type rig struct {
	t        *testing.T
	listener net.Listener
	dial     func() (net.Conn, error)
	apply    func(id string, r Rule) error
	lift     func(id string) Effect
}

// rigs runs f by a dialer and by a proxy.
func rigs(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Run("dialer", func(t *testing.T) {
		r := newRig(t)
		d := &Dialer{}
		r.dial = func() (net.Conn, error) { return d.Dial(t.Context(), "tcp", r.listener.Addr().String()) }
		r.apply = func(id string, rule Rule) error { return d.Apply(id, nil, rule) }
		r.lift = d.Lift
		f(t, r)
	})
	t.Run("proxy", func(t *testing.T) {
		r := newRig(t)
		p := listen(t, r.listener.Addr().String())
		r.dial = func() (net.Conn, error) { return net.Dial("tcp", p.Addr()) }
		r.apply, r.lift = p.Apply, p.Lift
		f(t, r)
	})
}

func newRig(t *testing.T) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &rig{t: t, listener: l}
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

// connect answers both ends of a new connection.
func (r *rig) connect() (near, far net.Conn) {
	r.t.Helper()
	near, err := r.dial()
	if err != nil {
		r.t.Fatal(err)
	}
	return near, r.accept(near)
}

// accept is the server's end of a connection.
func (r *rig) accept(near net.Conn) net.Conn {
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

func (r *rig) put(id string, rule Rule) {
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

// ends shows that a connection ends with one of the errors, of which EOF is
// one, and has nothing more to say before.
func ends(t *testing.T, c net.Conn, want error) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n > 0 || !is(err, want) {
		t.Fatalf("read %d bytes, %v; want %v", n, err, want)
	}
}
