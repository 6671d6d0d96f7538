package faultnet

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"
)

// A rule reaches the addresses it names, and dials wait for it to be lifted.
func TestAddresses(t *testing.T) {
	one, two := newRig(t), newRig(t)
	first, second := one.listener.Addr().String(), two.listener.Addr().String()
	d := &Dialer{}
	dial := func(r *rig) (near, far net.Conn) {
		near, err := d.Dial(t.Context(), "tcp", r.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return near, r.accept(near)
	}
	nearOne, farOne := dial(one)
	nearTwo, farTwo := dial(two)
	nearThree, _ := dial(two)
	want := []string{first, second}
	slices.Sort(want)
	if got := d.Peers(); !slices.Equal(got, want) || d.Open() != 3 {
		t.Errorf("%d connections to %v", d.Open(), got)
	}
	nearThree.Close()

	if err := d.Apply("cut", []string{first}, Rule{CutIn: true}); err != nil {
		t.Fatal(err)
	}
	send(t, farOne, "1")
	silent(t, nearOne)
	send(t, farTwo, "2")
	expect(t, nearTwo, "2")
	dial(two)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	var op *net.OpError
	if _, err := d.Dial(ctx, "tcp", first); !is(err, context.DeadlineExceeded) || !errors.As(err, &op) || op.Op != "dial" {
		t.Errorf("a dial into the cut: %v", err)
	}
	waiting := blocked(func() error {
		c, err := d.Dial(t.Context(), "tcp", first)
		if err == nil {
			defer c.Close()
			_, err = io.WriteString(c, "x")
		}
		return err
	})
	await(t, "both dials are held up", func() bool {
		d.hub.mu.Lock()
		defer d.hub.mu.Unlock()
		return d.hub.forces[0].dials.Load() == 2
	})
	// A client's close is no end of the connection yet for who cannot hear it,
	// but this rule holds back nothing that the client sends.
	nearOne.Close()
	endsSomehow(t, farOne)
	if e := d.Lift("cut"); e.Dials != 2 {
		t.Errorf("effect %+v", e)
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	if got := d.Peers(); !slices.Equal(got, []string{second}) {
		t.Errorf("peers %v", got)
	}
}

// A connection whose end is held back is not open for its user.
func TestHeldEndIsNotOpen(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		p.dialer.Set(Stall)
		send(t, p.near, "last words")
		if err := p.near.Close(); err != nil {
			t.Fatal(err)
		}
		if err := p.near.Close(); !is(err, net.ErrClosed) {
			t.Errorf("closed twice: %v", err)
		}
		if _, err := p.near.Write([]byte("x")); !is(err, net.ErrClosed) {
			t.Errorf("written after the close: %v", err)
		}
		if n := p.dialer.Open(); n != 0 {
			t.Errorf("%d open", n)
		}
		silent(t, p.far)
		p.dialer.Set(Pass)
		expect(t, p.far, "last words")
		ends(t, p.far, io.EOF)
	})
}

// A user's deadlines hold before, during and after a rule, and ours are never
// seen.
func TestDeadlinesOutliveARule(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		read := blocked(func() error { _, err := io.ReadFull(p.near, make([]byte, 4)); return err })
		for range 2000 {
			p.dialer.Set(Stall)
			p.dialer.Set(Pass)
		}
		send(t, p.far, "here")
		if err := <-read; err != nil {
			t.Fatalf("a read without deadline ended with %v", err)
		}
		p.near.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		p.dialer.Set(Stall)
		p.dialer.Set(Pass)
		var timeout net.Error
		if _, err := p.near.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("a deadline from before the rule: %v", err)
		}
		p.dialer.Set(Stall)
		p.near.SetDeadline(time.Now().Add(time.Hour))
		p.dialer.Set(Pass)
		send(t, p.far, "x")
		expect(t, p.near, "x")
		send(t, p.near, "y")
		expect(t, p.far, "y")
	})
}

// look is what a driver's liveness check does before it uses a connection
// again. It tells whether it saw the socket at all.
func look(t *testing.T, c net.Conn) (looked bool, seen error, err error) {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Read(func(fd uintptr) bool {
		looked = true
		var b [1]byte
		n, _, e := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if seen = e; n == 0 && e == nil {
			seen = io.EOF
		}
		return true
	})
	return looked, seen, err
}

// What a rule hides is hidden from a look at the descriptor as well.
func TestRawConnTellsNothing(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		if looked, seen, err := look(t, p.near); !looked || !is(seen, syscall.EAGAIN) || err != nil {
			t.Fatalf("an idle connection: %v, %v, %v", looked, seen, err)
		}
		apply := func(id string, r Rule) {
			if err := p.dialer.Apply(id, nil, r); err != nil {
				t.Fatal(err)
			}
		}
		apply("cut", Rule{CutIn: true})
		send(t, p.far, "x")
		if looked, _, err := look(t, p.near); looked || err != nil {
			t.Errorf("with bytes held: %v, %v", looked, err)
		}
		// A deadline of the driver's that has passed must not make it seem dead.
		p.near.SetReadDeadline(time.Time{})
		silent(t, p.near)
		p.far.Close()
		if looked, _, err := look(t, p.near); looked || err != nil {
			t.Errorf("with an end held: %v, %v", looked, err)
		}
		p.dialer.Lift("cut")
		if _, _, err := look(t, p.near); err == nil {
			t.Error("what waits to be read is not told")
		}
		expect(t, p.near, "x")
		ends(t, p.near, io.EOF)
	})
}

// After a rule that found nobody reading, a look sees the socket again.
func TestRawConnAfterARule(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		if err := p.dialer.Apply("lose", nil, Rule{LoseReply: true}); err != nil {
			t.Fatal(err)
		}
		if looked, _, err := look(t, p.near); looked || err != nil {
			t.Errorf("under the rule: %v, %v", looked, err)
		}
		p.far.Close()
		p.dialer.Lift("lose")
		if looked, seen, err := look(t, p.near); !looked || seen != io.EOF || err != nil {
			t.Errorf("after the rule: %v, %v, %v", looked, seen, err)
		}
	})
}

func TestRawWriteGoesAroundNoRule(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		raw, err := p.near.(syscall.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		called := false
		write := func() error { return raw.Write(func(uintptr) bool { called = true; return true }) }
		p.dialer.Set(Stall)
		if err := write(); err == nil || called {
			t.Errorf("during a cut: %v, %v", err, called)
		}
		p.dialer.Set(Pass)
		if err := write(); err != nil || !called {
			t.Errorf("after it: %v, %v", err, called)
		}
	})
}

// A dial takes a round trip longer under a delay.
func TestDelayedDial(t *testing.T) {
	r := newRig(t)
	d := &Dialer{}
	if err := d.Apply("late", nil, Rule{Delay: 10 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	c, err := d.Dial(t.Context(), "tcp", r.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if took := time.Since(start); took < 20*time.Millisecond {
		t.Errorf("dialled in %v", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Dial(ctx, "tcp", r.listener.Addr().String()); !is(err, context.Canceled) {
		t.Errorf("a dial of a context that has ended: %v", err)
	}
}

func TestSource(t *testing.T) {
	r := newRig(t)
	d := &Dialer{Source: net.IPv4(127, 0, 0, 1)}
	near, err := d.Dial(t.Context(), "tcp", r.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far := r.accept(near)
	if host, _, _ := net.SplitHostPort(far.RemoteAddr().String()); host != "127.0.0.1" {
		t.Errorf("the server sees %s", host)
	}
}

// The end of a connection that has nothing to send is held back too.
func TestIdleEndIsHeld(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		p.dialer.Set(Stall)
		p.near.Close()
		silent(t, p.far)
		p.dialer.Set(Pass)
		ends(t, p.far, io.EOF)
	})
}

// When the one reply is lost, the rule has nothing more to do with the others.
func TestUsedUpRuleIsNoRule(t *testing.T) {
	r := newRig(t)
	d := &Dialer{}
	r.dial = func() (net.Conn, error) { return d.Dial(t.Context(), "tcp", r.listener.Addr().String()) }
	idle, _ := r.connect()
	near, far := r.connect()
	if err := d.Apply("lose", nil, Rule{LoseReply: true}); err != nil {
		t.Fatal(err)
	}
	send(t, near, "request")
	send(t, far, "reply")
	ends(t, near, syscall.ECONNRESET)
	await(t, "a look sees the other's socket", func() bool { looked, _, err := look(t, idle); return looked && err == nil })
}

// A cut holds when Apply returns, also against a write that is under way
// because the server does not read.
func TestCutEndsAWriteUnderWay(t *testing.T) {
	r := newRig(t)
	d := &Dialer{}
	near, err := d.Dial(t.Context(), "tcp", r.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far := r.accept(near)
	if err := d.Apply("queued", nil, Rule{Jitter: 1}); err != nil {
		t.Fatal(err)
	}
	data := pattern(32 << 20)
	written := blocked(func() error { _, err := near.Write(data); return err })
	c := near.(*conn)
	sending := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.flows[out].sending && c.flows[out].size >= limit
	}
	await(t, "the buffers are full", sending)
	if err := d.Apply("cut", nil, Rule{CutOut: true}); err != nil {
		t.Fatal(err)
	}
	if sending() {
		t.Error("it is sending still")
	}
	d.Lift("cut")
	got := make([]byte, len(data))
	if _, err := io.ReadFull(far, got); err != nil || !slices.Equal(got, data) {
		t.Errorf("%v", err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	d.Lift("queued")
}
