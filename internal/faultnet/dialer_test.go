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

// link is a dialed connection and its other end.
type link struct {
	dialer *Dialer
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
	p := &link{dialer: &Dialer{}}
	if p.near, err = p.dialer.Dial(context.Background(), network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if p.far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.near.Close(); p.far.Close(); p.dialer.Set(Pass) })
	return p
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
		if n := p.dialer.Open(); n != 1 {
			t.Errorf("%d open", n)
		}
		p.near.Close()
		if n := p.dialer.Open(); n != 0 {
			t.Errorf("%d open after the close", n)
		}
	})
}

func TestStalledWriteArrivesAfterTheHeal(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		p.dialer.Set(Stall)
		written := blocked(func() error { _, err := io.WriteString(p.near, "late"); return err })
		// Nothing comes through: a read at the other end times out.
		p.far.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if n, err := p.far.Read(make([]byte, 4)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("read %d bytes during the stall, %v", n, err)
		}
		p.far.SetReadDeadline(time.Time{})
		p.dialer.Set(Pass)
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
		p.dialer.Set(Stall)
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
		p.dialer.Set(Pass)
		send(t, p.far, "ghi")
		expect(t, p.near, "ab") // in pieces smaller than what was kept
		expect(t, p.near, "cdefghi")
	})
}

func TestDeadlineSetDuringAStall(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		p.dialer.Set(Stall)
		read := blocked(func() error { _, err := p.near.Read(make([]byte, 1)); return err })
		write := blocked(func() error { _, err := p.near.Write(make([]byte, limit+1)); return err })
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
		p.dialer.Set(Stall)
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
		if n := p.dialer.Reset(); n != 1 {
			t.Errorf("broke %d connections", n)
		}
		if err := <-read; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the read under way ended with %v", err)
		}
		if _, err := p.near.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a write ended with %v", err)
		}
		_, err := p.far.Read(make([]byte, 1))
		if p.far.LocalAddr().Network() == "tcp" && !errors.Is(err, syscall.ECONNRESET) || err == nil {
			t.Errorf("the other end saw %v", err)
		}
		if n := p.dialer.Open(); n != 0 {
			t.Errorf("%d open", n)
		}
	})
}

// A connection whose user is about to leave it was not broken by a rule that comes
// in that moment.
func TestResetOfAConnectionThatIsBeingClosed(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		c := p.near.(*conn)
		c.mu.Lock() // as Close has it, before the hub hears of it
		c.leave(net.ErrClosed)
		c.mu.Unlock()
		if n := p.dialer.Reset(); n != 0 {
			t.Errorf("broke %d connections", n)
		}
		c.Conn.Close()
		p.dialer.hub.leave(c)
	})
}

func TestResetEndsAStall(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		p.dialer.Set(Stall)
		read := blocked(func() error { _, err := p.near.Read(make([]byte, 1)); return err })
		p.dialer.Reset()
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
	d := &Dialer{}
	if err := d.Apply("refused", nil, Rule{Refuse: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Dial(context.Background(), "tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("refused dial: %v", err)
	}
	if e := d.Lift("refused"); e != (Effect{Dials: 1}) {
		t.Errorf("refused: %+v", e)
	}
	d.Set(Stall)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := d.Dial(ctx, "tcp", l.Addr().String()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stalled dial: %v", err)
	}
	dialed := blocked(func() error {
		c, err := d.Dial(context.Background(), "tcp", l.Addr().String())
		if err == nil {
			c.Close()
		}
		return err
	})
	d.Set(Pass)
	if err := <-dialed; err != nil {
		t.Errorf("dial after the heal: %v", err)
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
					p.dialer.Set(Pass)
					return
				default:
					p.dialer.Set(Stall)
					p.dialer.Set(Pass)
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
	b.Run("through", func(b *testing.B) {
		d := &Dialer{}
		roundTrips(b, func() (net.Conn, error) { return d.Dial(context.Background(), "tcp", l) })
	})
}

// echo is the address of a server that answers what it is told.
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
