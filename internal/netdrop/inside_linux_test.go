package netdrop

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds the wait for events that must come; they may come much sooner.
const patience = 20 * time.Second

var long = flag.Duration("long", 100*time.Millisecond, "how long the cut of TestInsideLongCut lasts")

func inside(t *testing.T) *Dropper {
	t.Helper()
	if !Inside() {
		t.Skip("TestInNamespace runs this one")
	}
	t.Parallel()
	d, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func apply(t *testing.T, d *Dropper, id string, in, out bool, pairs ...Pair) {
	t.Helper()
	if err := d.Apply(id, pairs, in, out); err != nil {
		t.Fatal(err)
	}
}

// lift also checks that packets were dropped, or that none were.
func lift(t *testing.T, d *Dropper, id string, some bool) {
	t.Helper()
	n, err := d.Lift(id)
	if err != nil || (n > 0) != some {
		t.Errorf("%s dropped %d packets, %v", id, n, err)
	}
}

const established = 1 // TCP_ESTABLISHED

// A client that closes behind a cut has not gone for its server, until the cut
// is healed.
func TestInsideFarewellIsHeldBack(t *testing.T) {
	d := inside(t)
	l, server := listen(t)
	a, b := connect(t, l, client(1)), connect(t, l, client(2))
	a.passes(t)
	apply(t, d, "holder-cut-1", true, true, Pair{client(1), server})
	b.passes(t)
	a.client.Close()
	// Within a machine a packet has arrived when its sending returns.
	b.passes(t)
	if s := info(t, a.server); s.State != established {
		t.Errorf("the server has seen the end behind the cut: state %d", s.State)
	}
	lift(t, d, "holder-cut-1", true)
	_ = a.server.SetReadDeadline(time.Now().Add(patience))
	if n, err := a.server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the heal the server reads %d bytes, %v", n, err)
	}
	b.passes(t)
}

// The known bad of the test above: without a rule, or with one for others, the
// server sees the end at once.
func TestInsideFarewellPassesWithoutCut(t *testing.T) {
	d := inside(t)
	l, server := listen(t)
	other, elsewhere := listen(t)
	a := connect(t, l, client(1))
	away := connect(t, other, client(2))
	apply(t, d, "cut", true, true, Pair{client(2), server}, Pair{client(1), elsewhere})
	away.passes(t) // another server than the one that the rule names
	a.passes(t)
	a.client.Close()
	await(t, "the end", func() bool { return info(t, a.server).State != established })
	lift(t, d, "cut", false)
}

// In holds back what servers send, out what the client sends.
func TestInsideOneWay(t *testing.T) {
	d := inside(t)
	l, server := listen(t)
	for _, in := range []bool{true, false} {
		a := connect(t, l, client(1))
		a.passes(t)
		open, cut := link{a.client, a.server}, link{a.server, a.client} // from, to
		if !in {
			open, cut = cut, open
		}
		apply(t, d, "one way", in, !in, Pair{client(1), server})
		send(t, open.client)
		receive(t, open.server)
		send(t, cut.client)
		resent(t, cut.client, 2)
		if n := unread(t, cut.server); n != 0 {
			t.Errorf("in %v: %d bytes have passed", in, n)
		}
		lift(t, d, "one way", true)
		receive(t, cut.server)
		a.passes(t)
	}
}

func unread(t *testing.T, c *net.TCPConn) (n int) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	ctlErr := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	if err := errors.Join(ctlErr, err); err != nil {
		t.Fatal(err)
	}
	return n
}

// A new connection hangs in its handshake, whichever way is cut, and is made
// after the heal.
func TestInsideDialHangs(t *testing.T) {
	d := inside(t)
	for i, way := range [][2]bool{{true, true}, {true, false}, {false, true}} {
		l, server := listen(t)
		from := client(byte(10 + i))
		apply(t, d, "dial", way[0], way[1], Pair{from, server})
		dialled := make(chan error, 1)
		go func() {
			c, err := dial(t.Context(), from, server)
			if err == nil {
				err = c.Close()
			}
			dialled <- err
		}()
		await(t, "a handshake", func() bool { return handshaking(t, from) })
		select {
		case err := <-dialled:
			t.Errorf("in %v, out %v: it was made behind the cut (%v)", way[0], way[1], err)
		default:
		}
		lift(t, d, "dial", true)
		if err := <-dialled; err != nil {
			t.Error(err)
		}
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}

// handshaking reports whether a client has asked for a connection and not got
// it: the state SYN_SENT in the kernel's list.
func handshaking(t *testing.T, from netip.Addr) bool {
	t.Helper()
	list, err := os.ReadFile("/proc/thread-self/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	a := from.As4()
	slices.Reverse(a[:])
	return slices.ContainsFunc(strings.Split(string(list), "\n"), func(line string) bool {
		f := strings.Fields(line)
		return len(f) > 3 && strings.HasPrefix(f[1], fmt.Sprintf("%X:", a)) && f[3] == "02"
	})
}

// Rules add up, and each is lifted by itself.
func TestInsideRulesOverlap(t *testing.T) {
	d := inside(t)
	l, server := listen(t)
	a := connect(t, l, client(1))
	p := Pair{client(1), server}
	apply(t, d, "in", true, false, p)
	apply(t, d, "out", false, true, p, p)
	lift(t, d, "in", false)
	send(t, a.client)
	resent(t, a.client, 1)
	if n := unread(t, a.server); n != 0 {
		t.Errorf("%d bytes have passed the second rule", n)
	}
	lift(t, d, "out", true)
	receive(t, a.server)
	a.passes(t)
}

// However long a cut, the first byte comes soon after it: the sender tries every
// second, and does not give up either.
func TestInsideTriesAgainSoon(t *testing.T) {
	d := inside(t)
	if Settings()["net.ipv4.tcp_rto_max_ms"] != "1000" {
		t.Skipf("THE PAUSE AFTER A HEAL IS NOT BOUNDED HERE: %v", Settings())
	}
	l, server := listen(t)
	a := connect(t, l, client(1))
	apply(t, d, "cut", true, true, Pair{client(1), server})
	send(t, a.client)
	resent(t, a.client, 4) // after 0.2, 0.6, 1.4 and 2.4 s; the next waits would be 3.2 s and longer
	if rto := time.Duration(info(t, a.client).Rto) * time.Microsecond; rto > time.Second {
		t.Errorf("it tries again after %v", rto)
	}
	lift(t, d, "cut", true)
	receive(t, a.server)
	// The kernel counts tries where one would want a time: see wanted.
	for name, least := range map[string]int{"net.ipv4.tcp_retries2": 240, "net.ipv4.tcp_orphan_retries": 100, "net.ipv4.tcp_syn_retries": 120} {
		var n int
		if _, err := fmt.Sscan(Settings()[name], &n); err != nil || n < least {
			t.Errorf("%s is %q, %v", name, Settings()[name], err)
		}
	}
}

// A long cut (-long 40s) breaks neither a connection with data under way, nor the
// FIN of a client that closed when the cut began: the kernel would give both up
// with fewer retries.
func TestInsideLongCut(t *testing.T) {
	d := inside(t)
	l, server := listen(t)
	a, b := connect(t, l, client(1)), connect(t, l, client(1))
	apply(t, d, "cut", true, true, Pair{client(1), server})
	send(t, a.client)
	send(t, a.server)
	b.client.Close()
	time.Sleep(*long)
	lift(t, d, "cut", true)
	receive(t, a.server)
	receive(t, a.client)
	await(t, "the farewell", func() bool { return info(t, b.server).State != established })
}

// A rule may name every client and every server.
func TestInsideManyPairs(t *testing.T) {
	d := inside(t)
	l, server := listen(t)
	var pairs []Pair
	for i := range 3000 {
		pairs = append(pairs, Pair{netip.AddrFrom4([4]byte{127, 77, byte(i >> 8), byte(i)}), server})
	}
	a := connect(t, l, pairs[2999].Client)
	apply(t, d, "all", true, true, pairs...)
	send(t, a.client)
	resent(t, a.client, 1)
	if n := unread(t, a.server); n != 0 {
		t.Errorf("%d bytes have passed", n)
	}
	lift(t, d, "all", true)
	receive(t, a.server)
}

func TestInsideErrors(t *testing.T) {
	d := inside(t)
	_, server := listen(t)
	good := Pair{client(1), server}
	apply(t, d, "taken", true, true, good)
	for name, err := range map[string]error{
		"taken":        d.Apply("taken", []Pair{good}, true, true),
		"no pair":      d.Apply("a", nil, true, true),
		"no direction": d.Apply("b", []Pair{good}, false, false),
		"IPv6":         d.Apply("c", []Pair{{netip.IPv6Loopback(), server}}, true, true),
		"no client":    d.Apply("d", []Pair{{Server: server}}, true, true),
		"no port":      d.Apply("e", []Pair{{client(1), netip.AddrPortFrom(server.Addr(), 0)}}, true, true),
		"not there":    func() error { _, err := d.Lift("nothing"); return err }(),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	lift(t, d, "taken", false)
	if _, err := d.Lift("taken"); err == nil {
		t.Error("lifted twice")
	}
	apply(t, d, "taken", true, true, good) // the name is free again
}

// Close takes away what is in force, and leaves no table.
func TestInsideClose(t *testing.T) {
	d := inside(t)
	l, server := listen(t)
	a := connect(t, l, client(1))
	apply(t, d, "cut", true, true, Pair{client(1), server})
	name := d.table.Name
	if err := errors.Join(d.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	a.passes(t)
	if slices.Contains(tables(t), name) {
		t.Errorf("the table %s is still there", name)
	}
	if err := d.Apply("late", []Pair{{client(1), server}}, true, true); err == nil {
		t.Error("a closed dropper took a rule")
	}
	if err := Enter(); err != nil { // once more changes nothing
		t.Error(err)
	}
}
