package faultnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// link is a connection dialed through a proxy, and its other end.
type link struct {
	dialer *Dialer
	proxy  *Proxy
	near   net.Conn
	far    net.Conn
}

func connect(t *testing.T, network string) *link {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := &link{}
	p.dialer, p.proxy = dialer(t)
	if p.near, err = p.dialer.Dial(context.Background(), network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if p.far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.near.Close(); p.far.Close() })
	return p
}

// cut cuts the link in both directions; heal lifts that.
func (p *link) cut(t *testing.T) { t.Helper(); apply(t, p.proxy, "cut", cutOff) }
func (p *link) heal()            { p.proxy.Lift("cut") }

// reset breaks the present connections and returns how many.
func (p *link) reset(t *testing.T) int64 {
	t.Helper()
	apply(t, p.proxy, "reset", Rule{Reset: true})
	return p.proxy.Lift("reset").Broken
}

func both(t *testing.T, f func(t *testing.T, p *link)) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) { f(t, connect(t, network)) })
	}
}

func send(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, c net.Conn, s string) {
	t.Helper()
	b := make([]byte, len(s))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != s {
		t.Fatalf("read %q, %v; want %q", b, err, s)
	}
}

// blocked runs f and answers a channel with its end; the caller shows that it
// was blocked by what happens before it ends.
func blocked(f func() error) <-chan error {
	c := make(chan error, 1)
	go func() { c <- f() }()
	return c
}

func TestPass(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		send(t, p.near, "there")
		expect(t, p.far, "there")
		send(t, p.far, "and back")
		expect(t, p.near, "and back")
		p.far.Close()
		if _, err := p.near.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("after the other end closed: %v", err)
		}
		if peers := p.dialer.Peers(); len(peers) != 1 {
			t.Errorf("connected to %v", peers)
		}
		p.near.Close()
		if peers := p.dialer.Peers(); len(peers) != 0 {
			t.Errorf("connected to %v after the close", peers)
		}
	})
}

func TestStalledWriteArrivesAfterTheHeal(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		p.cut(t)
		written := blocked(func() error { _, err := io.WriteString(p.near, "late"); return err })
		// Nothing comes through: a read at the other end times out.
		p.far.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if n, err := p.far.Read(make([]byte, 4)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("read %d bytes during the stall, %v", n, err)
		}
		p.far.SetReadDeadline(time.Time{})
		p.heal()
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		expect(t, p.far, "late")
	})
}

// Bytes that come during a stall are not lost, not even to a reader whose
// deadline passes meanwhile, and keep their order.
func TestStalledReadKeepsWhatCame(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		underway := make(chan struct{})
		read := blocked(func() error {
			close(underway)
			_, err := p.near.Read(make([]byte, 3))
			return err
		})
		<-underway
		p.cut(t)
		p.near.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		send(t, p.far, "abcdef")
		if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("the read under way ended with %v", err)
		}
		var nerr net.Error
		if _, err := p.near.Read(make([]byte, 1)); !errors.As(err, &nerr) || !nerr.Timeout() {
			t.Fatalf("a later read ended with %v", err)
		}
		p.near.SetReadDeadline(time.Time{})
		p.heal()
		send(t, p.far, "ghi")
		expect(t, p.near, "ab") // in pieces smaller than what was kept
		expect(t, p.near, "cdefghi")
	})
}

func TestDeadlineSetDuringAStall(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		p.cut(t)
		read := blocked(func() error { _, err := p.near.Read(make([]byte, 1)); return err })
		write := blocked(func() error { _, err := p.near.Write(make([]byte, 64<<20)); return err })
		p.near.SetDeadline(time.Now().Add(-time.Second))
		for _, c := range []<-chan error{read, write} {
			if err := <-c; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestCloseEndsAStall(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		p.cut(t)
		read := blocked(func() error { _, err := p.near.Read(make([]byte, 1)); return err })
		p.near.Close()
		if err := <-read; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestReset(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		read := blocked(func() error { _, err := p.near.Read(make([]byte, 1)); return err })
		if n := p.reset(t); n != 1 {
			t.Errorf("broke %d connections", n)
		}
		if err := <-read; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the read under way ended with %v", err)
		}
		if _, err := p.near.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
			t.Errorf("a write ended with %v", err)
		}
		_, err := p.far.Read(make([]byte, 1))
		if p.far.LocalAddr().Network() == "tcp" && !errors.Is(err, syscall.ECONNRESET) || err == nil {
			t.Errorf("the other end saw %v", err)
		}
	})
}

// A connection that its client has closed is not broken by a later rule.
func TestResetOfAClosedConnection(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		p.cut(t)
		p.near.Close()
		await(t, "the proxy sees the close", func() bool { return p.proxy.given() == 1 })
		if n := p.reset(t); n != 0 {
			t.Errorf("broke %d connections", n)
		}
	})
}

// A reset comes when the cut that holds it back is over.
func TestResetAfterACut(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		p.cut(t)
		read := blocked(func() error { _, err := p.near.Read(make([]byte, 1)); return err })
		p.reset(t)
		silent(t, p.far)
		select {
		case err := <-read:
			t.Fatalf("during the cut: %v", err)
		default:
		}
		p.heal()
		if err := <-read; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %v", err)
		}
	})
}

func TestDialsUnderFaults(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d, p := dialer(t)
	apply(t, p, "refused", Rule{Refuse: true})
	if _, err := d.Dial(context.Background(), "tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("refused dial: %v", err)
	}
	if e := p.Lift("refused"); e != (Effect{Dials: 1}) {
		t.Errorf("refused: %+v", e)
	}
	apply(t, p, "cut", cutOff)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := d.Dial(ctx, "tcp", l.Addr().String()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cut dial: %v", err)
	}
	dialed := blocked(func() error {
		c, err := d.Dial(context.Background(), "tcp", l.Addr().String())
		if err == nil {
			c.Close()
		}
		return err
	})
	p.Lift("cut")
	if err := <-dialed; err != nil {
		t.Errorf("dial after the heal: %v", err)
	}
}

// A dial through a proxy fails as a direct one does.
func TestDialErrors(t *testing.T) {
	closed := newServer(t)
	closed.listener.Close()
	through, p := dialer(t)
	for _, d := range []*Dialer{{}, through} {
		if _, err := d.Dial(t.Context(), "tcp", closed.listener.Addr().String()); !is(err, syscall.ECONNREFUSED) {
			t.Errorf("a server that is not there: %v", err)
		}
		if _, err := d.Dial(t.Context(), "unix", filepath.Join(t.TempDir(), "none")); !is(err, syscall.ENOENT) {
			t.Errorf("a socket that is not there: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var op *net.OpError
		if _, err := d.Dial(ctx, "tcp", closed.listener.Addr().String()); err == nil || !errors.As(err, &op) || op.Op != "dial" {
			t.Errorf("a dial of a context that has ended: %v", err)
		}
	}
	await(t, "the proxy has forgotten them", func() bool { return p.open() == 0 })
}

// A proxy for dialers closes connections that send something else.
func TestNoRequest(t *testing.T) {
	p := listen(t, "")
	for _, sent := range []string{"no-address\n", string(make([]byte, maxRequest+1))} {
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		send(t, c, sent)
		endsSomehow(t, c)
		c.Close()
	}
}

// Drivers look through the raw connection whether the peer has closed it.
func TestSyscallConn(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		raw, err := p.near.(syscall.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		seen := false
		if err := raw.Control(func(fd uintptr) { seen = fd > 0 }); err != nil || !seen {
			t.Errorf("control: %v, %v", seen, err)
		}
	})
}

// Whatever the faults, a stream arrives whole and in order once healed.
func TestStreamSurvivesStalls(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		want := make([]byte, 1<<20)
		for i := range want {
			want[i] = byte(i * 7 >> 3)
		}
		var wg sync.WaitGroup
		wg.Go(func() { p.far.Write(want); p.far.(interface{ CloseWrite() error }).CloseWrite() })
		stop := make(chan struct{})
		wg.Go(func() {
			for {
				select {
				case <-stop:
					p.heal()
					return
				default:
					if err := p.proxy.Apply("cut", cutOff); err != nil {
						t.Error(err)
						return
					}
					p.heal()
				}
			}
		})
		got, err := io.ReadAll(p.near)
		close(stop)
		wg.Wait()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d of %d bytes, %v", len(got), len(want), err)
		}
	})
}

func BenchmarkRoundTrip(b *testing.B) {
	l := echo(b)
	b.Run("plain", func(b *testing.B) {
		roundTrips(b, func() (net.Conn, error) { return net.Dial("tcp", l) })
	})
	b.Run("dialer", func(b *testing.B) {
		d := &Dialer{}
		roundTrips(b, func() (net.Conn, error) { return d.Dial(context.Background(), "tcp", l) })
	})
}

// echo is the address of a server that sends back what it receives.
func echo(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func roundTrips(b *testing.B, dial func() (net.Conn, error)) {
	c, err := dial()
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			b.Fatal(err)
		}
	}
}
