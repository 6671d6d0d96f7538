package faultnet

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"
)

// A rule reaches the addresses it names, and dials wait for it to be lifted.
func TestAddresses(t *testing.T) {
	one, two := newServer(t), newServer(t)
	first, second := one.listener.Addr().String(), two.listener.Addr().String()
	d, p := dialer(t)
	dial := func(r *faultyServer) (near, far net.Conn) {
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
	if got := d.Peers(); !slices.Equal(got, want) {
		t.Errorf("connected to %v", got)
	}
	nearThree.Close()

	if err := p.Apply("cut", Rule{CutIn: true}, first); err != nil {
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
	await(t, "both dials are held up", func() bool { return p.hub.held("cut") == 2 })
	// The rule holds back nothing that the client sends, its close included.
	nearOne.Close()
	endsSomehow(t, farOne)
	if e := p.Lift("cut"); e.Dials != 2 {
		t.Errorf("effect %+v", e)
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	if got := d.Peers(); !slices.Equal(got, []string{second}) {
		t.Errorf("peers %v", got)
	}
}

// A connection whose end is held back is closed for its client.
func TestHeldEnd(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		p.cut(t)
		send(t, p.near, "last words")
		if err := p.near.Close(); err != nil {
			t.Fatal(err)
		}
		if peers := p.dialer.Peers(); len(peers) != 0 {
			t.Errorf("connected to %v", peers)
		}
		silent(t, p.far)
		p.heal()
		expect(t, p.far, "last words")
		ends(t, p.far, io.EOF)
	})
}

// look does what a driver's liveness check does before it uses a connection
// again.
func look(t *testing.T, c net.Conn) (seen error) {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		n, _, e := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if seen = e; n == 0 && e == nil {
			seen = io.EOF
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// A rule also hides bytes and ends from a look at the descriptor.
func TestRuleHidesFromALook(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		if seen := look(t, p.near); !is(seen, syscall.EAGAIN) {
			t.Fatalf("an idle connection: %v", seen)
		}
		apply(t, p.proxy, "cut", Rule{CutIn: true})
		send(t, p.far, "x")
		silent(t, p.near)
		if seen := look(t, p.near); !is(seen, syscall.EAGAIN) {
			t.Errorf("with bytes held: %v", seen)
		}
		p.far.Close()
		silent(t, p.near)
		if seen := look(t, p.near); !is(seen, syscall.EAGAIN) {
			t.Errorf("with an end held: %v", seen)
		}
		p.heal()
		expect(t, p.near, "x")
		await(t, "the end", func() bool { return look(t, p.near) == io.EOF })
	})
}

// A dial takes a round trip longer under a delay.
func TestDelayedDial(t *testing.T) {
	r := newServer(t)
	d, p := dialer(t)
	apply(t, p, "late", Rule{Delay: 10 * time.Millisecond})
	start := time.Now()
	c, err := d.Dial(t.Context(), "tcp", r.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if took := time.Since(start); took < 20*time.Millisecond {
		t.Errorf("dialed in %v", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Dial(ctx, "tcp", r.listener.Addr().String()); !is(err, context.Canceled) {
		t.Errorf("a dial of a context that has ended: %v", err)
	}
}

func TestSource(t *testing.T) {
	r := newServer(t)
	d := &Dialer{Source: net.IPv4(127, 0, 0, 1)}
	near, err := d.Dial(t.Context(), "tcp", r.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, plain := near.(*net.TCPConn); !plain {
		t.Errorf("dialed a %T, want the system's own connection", near)
	}
	far := r.accept(near)
	if host, _, _ := net.SplitHostPort(far.RemoteAddr().String()); host != "127.0.0.1" {
		t.Errorf("the server sees %s", host)
	}
}

// The end of a connection that has nothing to send is held back too.
func TestIdleEndIsHeld(t *testing.T) {
	both(t, func(t *testing.T, p *link) {
		p.cut(t)
		p.near.Close()
		silent(t, p.far)
		p.heal()
		ends(t, p.far, io.EOF)
	})
}

// When its one reply is lost, a rule no longer affects other connections.
func TestUsedUpRuleIsNoRule(t *testing.T) {
	r := newServer(t)
	d, p := dialer(t)
	r.dial = func() (net.Conn, error) { return d.Dial(t.Context(), "tcp", r.listener.Addr().String()) }
	r.connect()
	near, far := r.connect()
	apply(t, p, "lose", Rule{LoseReply: true})
	send(t, near, "request")
	expect(t, far, "request")
	send(t, far, "reply")
	ends(t, near, syscall.ECONNRESET)
	await(t, "the other connection has no rule", func() bool {
		list := p.pairs()
		return len(list) == 1 && list[0].ruleless()
	})
}

// A cut holds when Apply returns, also against a write that is under way
// because the server does not read.
func TestCutEndsAWriteUnderWay(t *testing.T) {
	r := newServer(t)
	d, p := dialer(t)
	near, err := d.Dial(t.Context(), "tcp", r.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far := r.accept(near)
	apply(t, p, "queued", Rule{Jitter: 1})
	data := pattern(32 << 20)
	written := blocked(func() error { _, err := near.Write(data); return err })
	c := p.pairs()[0]
	sending := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.flows[out].sending && c.flows[out].size >= limit
	}
	await(t, "the buffers are full", sending)
	apply(t, p, "cut", Rule{CutOut: true})
	if sending() {
		t.Error("it is sending still")
	}
	p.Lift("cut")
	got := make([]byte, len(data))
	if _, err := io.ReadFull(far, got); err != nil || !slices.Equal(got, data) {
		t.Errorf("%v", err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	p.Lift("queued")
}

func (p *Proxy) pairs() []*pair {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	return slices.Collect(maps.Keys(p.hub.pairs))
}

func (c *pair) ruleless() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rules.empty()
}
