package faultnet

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

var cutOff = Rule{CutIn: true, CutOut: true}

// A client that is killed while it is cut off stays connected for the server
// until the cut is over.
func TestKilledWhileCutOff(t *testing.T) {
	for _, upstream := range []string{"fixed", "named by a dialer"} {
		t.Run(upstream, func(t *testing.T) {
			r := newServer(t)
			server := r.listener.Addr().String()
			p, address := listen(t, ""), ""
			if address = p.Addr() + " " + server; upstream == "fixed" {
				p = listen(t, server)
				address = p.Addr()
			}
			kill := startClient(t, address)
			far := r.accept(nil)
			expect(t, far, "hello")
			apply(t, p, "cut", cutOff)
			kill()
			silent(t, far)
			send(t, far, "are you there?")
			silent(t, far)
			p.Lift("cut")
			endsSomehow(t, far)
		})
	}
}

// startClient starts a client process that has sent hello, and answers what
// kills it, for sure.
func startClient(t *testing.T, address string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+address)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // it stays until this is closed
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := false
	kill = func() {
		if !done {
			done = true
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the client says %q, %v", line, err)
	}
	return kill
}

func endsSomehow(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if n, err := c.Read(make([]byte, 1)); n > 0 || err != io.EOF && !is(err, syscall.ECONNRESET) {
		t.Errorf("read %d bytes, %v; want the end", n, err)
	}
}

// A client that connects during a cut is connected when it is over.
func TestProxyConnectDuringACut(t *testing.T) {
	r := newServer(t)
	p := listen(t, r.listener.Addr().String())
	apply(t, p, "in", Rule{CutIn: true})
	apply(t, p, "out", Rule{CutOut: true})
	near, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	send(t, near, "early")
	accepted := make(chan net.Conn, 1)
	go func() {
		if c, err := r.listener.Accept(); err == nil {
			accepted <- c
		}
	}()
	silent(t, near)
	p.Lift("in")
	silent(t, near)
	select {
	case <-accepted:
		t.Fatal("it is connected during the cut")
	default:
	}
	if e := p.Lift("out"); e != (Effect{HeldBytes: 5, Dials: 1}) {
		t.Errorf("effect %+v", e)
	}
	far := <-accepted
	t.Cleanup(func() { near.Close(); far.Close() })
	expect(t, far, "early")
	send(t, far, "answer")
	expect(t, near, "answer")
}

// A client that gives up during a cut is never connected, and its bytes do not
// arrive.
func TestProxyGivenUpDuringACut(t *testing.T) {
	r := newServer(t)
	p := listen(t, r.listener.Addr().String())
	apply(t, p, "cut", cutOff)
	gaveUp, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	send(t, gaveUp, "too early")
	gaveUp.Close()
	await(t, "the proxy has seen the end", func() bool { return p.given() == 1 })
	p.Lift("cut")
	near, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	send(t, near, "later")
	expect(t, r.accept(near), "later") // and not "too early"
}

// given counts the connections whose client has ended its part.
func (p *Proxy) given() (n int) {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	for c := range p.hub.pairs {
		c.mu.Lock()
		if c.flows[out].ended {
			n++
		}
		c.mu.Unlock()
	}
	return n
}

func TestProxyHalfClose(t *testing.T) {
	r := newServer(t)
	p := listen(t, r.listener.Addr().String())
	near, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	far := r.accept(near)
	send(t, near, "question")
	near.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(far)
	if err != nil || string(got) != "question" {
		t.Fatalf("%q, %v", got, err)
	}
	send(t, far, "answer")
	far.Close()
	if got, err = io.ReadAll(near); err != nil || string(got) != "answer" {
		t.Fatalf("%q, %v", got, err)
	}
	await(t, "the proxy has forgotten it", func() bool { return p.open() == 0 })
}

func (p *Proxy) open() int {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	return len(p.hub.pairs)
}

// A reset of one end resets the other, also after it had closed its half.
func TestProxyPassesResetsOn(t *testing.T) {
	r := newServer(t)
	p := listen(t, r.listener.Addr().String())
	for _, half := range []bool{false, true} {
		for _, fromFar := range []bool{false, true} {
			near, err := net.Dial("tcp", p.Addr())
			if err != nil {
				t.Fatal(err)
			}
			from, to := near, r.accept(near)
			if fromFar {
				from, to = to, from
			}
			if half {
				from.(*net.TCPConn).CloseWrite()
				ends(t, to, io.EOF)
			}
			abort(from)
			if !eventually(func() bool { _, err := to.Write([]byte("x")); return err != nil }) {
				t.Errorf("half closed %v, from the server %v: writes never fail", half, fromFar)
			}
		}
	}
	await(t, "the proxy has forgotten them", func() bool { return p.open() == 0 })
}

func TestProxyWithoutUpstream(t *testing.T) {
	r := newServer(t)
	p := listen(t, r.listener.Addr().String())
	r.listener.Close()
	near, err := net.Dial("tcp", p.Addr())
	if err == nil { // it may be reset before it knows that it is connected
		defer near.Close()
		_, err = io.ReadAll(near)
	}
	if !is(err, syscall.ECONNRESET) {
		t.Errorf("got %v", err)
	}
}

// Close ends whatever a rule holds.
func TestProxyClose(t *testing.T) {
	r := newServer(t)
	p, err := Listen("127.0.0.1:0", r.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	far := r.accept(near)
	apply(t, p, "cut", cutOff)
	held, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	send(t, near, "x")
	send(t, far, "y")
	await(t, "both are known", func() bool { return p.open() == 2 })
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{near, far, held} {
		endsSomehow(t, c)
	}
	if n := p.open(); n != 0 {
		t.Errorf("%d connections after the close", n)
	}
	var late net.Conn = near
	p.Serve(late) // is closed at once
	if _, err := late.Write([]byte("x")); err == nil {
		t.Error("a closed proxy serves")
	}
}

// A proxy that does not listen forwards what it is given.
func TestProxyServe(t *testing.T) {
	r := newServer(t)
	p := NewProxy(r.listener.Addr().String())
	defer p.Close()
	if p.Addr() != "" {
		t.Errorf("it listens at %s", p.Addr())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p.Serve(c)
	send(t, near, "through")
	expect(t, r.accept(near), "through")
}

func apply(t *testing.T, p *Proxy, id string, r Rule) {
	t.Helper()
	if err := p.Apply(id, r); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkProxy(b *testing.B) {
	l := echo(b)
	p, err := Listen("127.0.0.1:0", l)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	roundTrips(b, func() (net.Conn, error) { return net.Dial("tcp", p.Addr()) })
}

// BenchmarkUnderRule is a connection whose bytes go through queues.
func BenchmarkUnderRule(b *testing.B) {
	l := echo(b)
	p, err := Listen("127.0.0.1:0", l)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	if err := p.Apply("next to nothing", Rule{Rate: 1 << 40}); err != nil {
		b.Fatal(err)
	}
	roundTrips(b, func() (net.Conn, error) { return net.Dial("tcp", p.Addr()) })
}

// With patience, a proxy keeps a new connection waiting for an upstream that does
// not listen yet; without patience, or after it, it resets the connection.
func TestPatience(t *testing.T) {
	reserved, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := reserved.Addr().String()
	if err := reserved.Close(); err != nil {
		t.Fatal(err)
	}
	for _, patience := range []time.Duration{0, time.Minute} {
		p := NewProxy(address)
		p.Patience = patience
		near, far := net.Pipe()
		p.Serve(far)
		if patience > 0 {
			late, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := late.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			var b [1]byte
			if _, err := near.Read(b[:]); err != nil || b[0] != 'x' {
				t.Errorf("a patient proxy: %q, %v", b, err)
			}
			_ = conn.Close()
			_ = late.Close()
		} else if _, err := near.Read(make([]byte, 1)); err == nil {
			t.Error("an upstream that refuses is no end of the connection")
		}
		if err := errors.Join(p.Close(), near.Close()); err != nil {
			t.Error(err)
		}
	}
}
