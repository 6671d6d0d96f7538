package faultnet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func is(err, want error) bool { return errors.Is(err, want) }

func TestCutOut(t *testing.T) {
	eachWay(t, func(t *testing.T, r *faultyServer) {
		near, far := r.connect()
		r.put("cut", Rule{CutOut: true})
		send(t, near, "held")
		near.Close() // and its end with it
		silent(t, far)
		silent(t, far)
		if e := r.lift("cut"); e != (Effect{HeldBytes: 4}) {
			t.Errorf("effect %+v", e)
		}
		expect(t, far, "held")
		ends(t, far, io.EOF)
		if e := r.lift("cut"); e != (Effect{}) {
			t.Errorf("lifted twice: %+v", e)
		}
	})
}

// One direction is cut, the other is not.
func TestCutIn(t *testing.T) {
	eachWay(t, func(t *testing.T, r *faultyServer) {
		near, far := r.connect()
		r.put("cut", Rule{CutIn: true})
		send(t, far, "held")
		far.(*net.TCPConn).CloseWrite()
		silent(t, near)
		send(t, near, "passes")
		expect(t, far, "passes")
		silent(t, near)
		if e := r.lift("cut"); e != (Effect{HeldBytes: 4}) {
			t.Errorf("effect %+v", e)
		}
		expect(t, near, "held")
		ends(t, near, io.EOF)
		ends(t, near, io.EOF)
	})
}

// A client that is muted still sends, also on new connections.
func TestMute(t *testing.T) {
	eachWay(t, func(t *testing.T, r *faultyServer) {
		near, far := r.connect()
		r.put("mute", Rule{Mute: true})
		send(t, far, "held")
		silent(t, near)
		send(t, near, "passes")
		expect(t, far, "passes")
		near2, far2 := r.connect()
		send(t, near2, "passes too")
		expect(t, far2, "passes too")
		send(t, far2, "held too")
		silent(t, near2)
		if e := r.lift("mute"); e != (Effect{HeldBytes: 12}) {
			t.Errorf("effect %+v", e)
		}
		expect(t, near, "held")
		expect(t, near2, "held too")
	})
}

// A server's reset is hidden too, also from writes.
func TestCutInHidesAReset(t *testing.T) {
	eachWay(t, func(t *testing.T, r *faultyServer) {
		near, far := r.connect()
		r.put("cut", Rule{CutIn: true})
		abort(far)
		for range 20 {
			send(t, near, "into the void")
			silent(t, near)
		}
		r.lift("cut")
		near.SetReadDeadline(time.Now().Add(20 * time.Second))
		// A kernel reports a reset once: after a write returned it, a read sees
		// the end.
		if _, err := near.Read(make([]byte, 1)); !is(err, syscall.ECONNRESET) && err != io.EOF {
			t.Errorf("after the cut: %v", err)
		}
		if !eventually(func() bool { _, err := near.Write([]byte("x")); return err != nil }) {
			t.Error("writes never fail")
		}
	})
}

// Bytes that two rules hold back pass when both are lifted.
func TestRulesAddUp(t *testing.T) {
	eachWay(t, func(t *testing.T, r *faultyServer) {
		near, far := r.connect()
		r.put("one", Rule{CutOut: true})
		r.put("two", Rule{CutOut: true, CutIn: true})
		if err := r.apply("two", Rule{}); err == nil || !strings.Contains(err.Error(), "two") {
			t.Errorf("an id twice: %v", err)
		}
		send(t, near, "out")
		send(t, far, "in")
		silent(t, far)
		silent(t, near)
		if e := r.lift("one"); e != (Effect{HeldBytes: 3}) {
			t.Errorf("the first: %+v", e)
		}
		silent(t, far)
		if e := r.lift("two"); e != (Effect{HeldBytes: 5}) {
			t.Errorf("the second: %+v", e)
		}
		expect(t, far, "out")
		expect(t, near, "in")
	})
}

func TestRuleThatCannotBeMeant(t *testing.T) {
	eachWay(t, func(t *testing.T, r *faultyServer) {
		for _, rule := range []Rule{{Delay: -1}, {Jitter: -1}, {Rate: -1}} {
			if err := r.apply("x", rule); err == nil {
				t.Errorf("%+v is accepted", rule)
			}
		}
	})
}

// A writer of more than the buffers hold is blocked, and the buffered bytes arrive.
func TestCutHoldsUpAWriter(t *testing.T) {
	eachWay(t, func(t *testing.T, r *faultyServer) {
		for _, rule := range []Rule{{CutOut: true}, {Stall: true}} {
			near, far := r.connect()
			r.put("cut", rule)
			want := pattern(64 << 20) // more than the kernel's buffers, too
			near.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			n, err := near.Write(want)
			if n == 0 || n == len(want) || !os.IsTimeout(err) {
				t.Fatalf("%d bytes taken, %v", n, err)
			}
			near.SetWriteDeadline(time.Time{})
			r.lift("cut")
			closed := blocked(near.Close)
			got, err := io.ReadAll(far)
			if err != nil || !bytes.Equal(got, want[:n]) {
				t.Errorf("%d of %d bytes, %v", len(got), n, err)
			}
			if err := <-closed; err != nil {
				t.Error(err)
			}
		}
	})
}

// New connections pass a stall, and stall.
func TestStall(t *testing.T) {
	eachWay(t, func(t *testing.T, r *faultyServer) {
		old, oldFar := r.connect()
		r.put("stall", Rule{Stall: true})
		near, far := r.connect()
		for _, c := range []net.Conn{old, oldFar, near, far} {
			send(t, c, "x")
		}
		for _, c := range []net.Conn{old, oldFar, near, far} {
			silent(t, c)
		}
		if e := r.lift("stall"); e != (Effect{HeldBytes: 4}) {
			t.Errorf("effect %+v", e)
		}
		for _, c := range []net.Conn{old, oldFar, near, far} {
			expect(t, c, "x")
		}
	})
}

// Every byte is late in each direction, none is lost, and the order stays
// whatever the jitter.
func TestDelay(t *testing.T) {
	eachWay(t, func(t *testing.T, r *faultyServer) {
		near, far := r.connect()
		r.put("delay", Rule{Delay: 20 * time.Millisecond})
		r.put("more", Rule{Delay: 5 * time.Millisecond, Jitter: 10 * time.Millisecond, Seed: 7})
		start := time.Now()
		send(t, near, "there")
		expect(t, far, "there")
		send(t, far, "back")
		expect(t, near, "back")
		if d := time.Since(start); d < 50*time.Millisecond {
			t.Errorf("there and back in %v", d)
		}
		var wg sync.WaitGroup
		for i := range 50 {
			send(t, near, fmt.Sprintf("%03d", i))
			send(t, far, fmt.Sprintf("%03d", i))
		}
		for _, c := range []net.Conn{near, far} {
			wg.Go(func() {
				for i := range 50 {
					expect(t, c, fmt.Sprintf("%03d", i))
				}
			})
		}
		wg.Wait()
		for _, id := range []string{"delay", "more"} {
			if e := r.lift(id); e != (Effect{LateBytes: 309}) {
				t.Errorf("effect %+v", e)
			}
		}
	})
}

// The jitter of a piece depends on the seed and its place alone.
func TestJitterIsRepeatable(t *testing.T) {
	f := newActiveRule("f", nil, Rule{Delay: 5, Jitter: 1000, Seed: 1})
	g := newActiveRule("g", nil, Rule{Delay: 5, Jitter: 1000, Seed: 1})
	other := newActiveRule("h", nil, Rule{Delay: 5, Jitter: 1000, Seed: 2})
	same := 0
	for i := range uint64(1000) {
		late := f.lateness(3, i)
		if late != g.lateness(3, i) || late < 5 || late > 1005 {
			t.Fatalf("piece %d: %d", i, late)
		}
		if late == other.lateness(3, i) || late == f.lateness(4, i) {
			same++
		}
	}
	if same > 20 {
		t.Errorf("%d of 1000 pieces do not depend on seed and stream", same)
	}
}

// A rate is shared by all connections, and counts in each direction.
func TestRate(t *testing.T) {
	eachWay(t, func(t *testing.T, r *faultyServer) {
		near, far := r.connect()
		near2, far2 := r.connect()
		r.put("slow", Rule{Rate: 200_000})
		r.put("not so slow", Rule{Rate: 1_000_000})
		data := pattern(5000)
		start := time.Now()
		var wg sync.WaitGroup
		for _, way := range [][2]net.Conn{{near, far}, {near2, far2}, {far, near}} {
			wg.Go(func() {
				if _, err := way[0].Write(data); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				got := make([]byte, len(data))
				if _, err := io.ReadFull(way[1], got); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		if d := time.Since(start); d < 50*time.Millisecond {
			t.Errorf("two times 5000 bytes out in %v", d)
		}
		if e := r.lift("slow"); e != (Effect{LateBytes: 15000}) {
			t.Errorf("effect %+v", e)
		}
	})
}

// Bytes that a rule delays arrive at once when it is lifted.
func TestLiftEndsTheWait(t *testing.T) {
	eachWay(t, func(t *testing.T, r *faultyServer) {
		for _, rule := range []Rule{{Delay: time.Hour}, {Rate: 1}} {
			near, far := r.connect()
			r.put("late", rule)
			send(t, near, "there it is")
			send(t, far, "and back")
			near.SetReadDeadline(time.Now().Add(time.Millisecond))
			near.Read(make([]byte, 1)) // so that it has begun to wait
			near.SetReadDeadline(time.Time{})
			r.lift("late")
			rest := make([]byte, 64)
			if n, err := io.ReadAtLeast(near, rest, 7); err != nil || !strings.HasSuffix("and back", string(rest[:n])) {
				t.Errorf("%q, %v", rest[:n], err)
			}
			expect(t, far, "there it is")
		}
	})
}

func TestResetRule(t *testing.T) {
	eachWay(t, func(t *testing.T, r *faultyServer) {
		near, far := r.connect()
		under := blocked(func() error { _, err := near.Read(make([]byte, 1)); return err })
		r.put("reset", Rule{Reset: true})
		if err := <-under; !is(err, syscall.ECONNRESET) {
			t.Errorf("the read under way: %v", err)
		}
		ends(t, far, syscall.ECONNRESET)
		if _, err := near.Write([]byte("x")); !is(err, syscall.ECONNRESET) && !is(err, syscall.EPIPE) {
			t.Errorf("a write: %v", err)
		}
		near, far = r.connect() // is not touched
		send(t, near, "x")
		expect(t, far, "x")
		if e := r.lift("reset"); e != (Effect{Broken: 1}) {
			t.Errorf("effect %+v", e)
		}
	})
}

// A reset does not pass a cut either.
func TestResetBehindACut(t *testing.T) {
	eachWay(t, func(t *testing.T, r *faultyServer) {
		_, far := r.connect()
		r.put("cut", Rule{CutOut: true})
		r.put("reset", Rule{Reset: true})
		silent(t, far)
		r.lift("reset")
		silent(t, far)
		r.lift("cut")
		ends(t, far, syscall.ECONNRESET)
	})
}

func TestRefuse(t *testing.T) {
	eachWay(t, func(t *testing.T, r *faultyServer) {
		near, far := r.connect()
		r.put("refuse", Rule{Refuse: true})
		ends(t, near, syscall.ECONNRESET)
		ends(t, far, syscall.ECONNRESET)
		want := error(syscall.ECONNREFUSED)
		c, err := r.dial()
		if strings.HasSuffix(t.Name(), "/proxy") && is(err, syscall.ECONNRESET) {
			want = syscall.ECONNRESET // it accepted, and reset before the dial was over
		}
		if err == nil { // without a dialer the proxy accepts first
			want = syscall.ECONNRESET
			_, err = io.ReadAll(c)
			c.Close()
		}
		if !is(err, want) {
			t.Errorf("a dial: %v, want %v", err, want)
		}
		if e := r.lift("refuse"); e != (Effect{Dials: 1, Broken: 1}) {
			t.Errorf("effect %+v", e)
		}
		near, far = r.connect()
		send(t, near, "x")
		expect(t, far, "x")
	})
}

// Only the first request after the rule is lost, or its reply: neither an earlier
// request or reply, nor a later one of another connection.
func TestLoseOne(t *testing.T) {
	for name, rule := range map[string]Rule{"reply": {LoseReply: true}, "request": {LoseRequest: true}} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, r *faultyServer) {
				idle, idleFar := r.connect()
				send(t, idle, "old request")
				expect(t, idleFar, "old request")
				near, far := r.connect()
				r.put("lose", rule)

				send(t, idleFar, "old reply")
				expect(t, idle, "old reply")

				send(t, near, "request")
				if rule.LoseReply {
					expect(t, far, "request")
					send(t, far, "reply")
				}
				ends(t, near, syscall.ECONNRESET)
				ends(t, far, syscall.ECONNRESET)

				send(t, idle, "request")
				expect(t, idleFar, "request")
				send(t, idleFar, "reply")
				expect(t, idle, "reply")
				if e := r.lift("lose"); e != (Effect{LostBytes: int64(len(name)), Broken: 1}) {
					t.Errorf("effect %+v", e)
				}
			})
		})
	}
}

// A rule that has lost no reply loses none after it is lifted.
func TestLoseReplyLifted(t *testing.T) {
	eachWay(t, func(t *testing.T, r *faultyServer) {
		near, far := r.connect()
		r.put("lose", Rule{LoseReply: true})
		send(t, near, "request")
		expect(t, far, "request")
		if e := r.lift("lose"); e != (Effect{}) {
			t.Errorf("effect %+v", e)
		}
		send(t, far, "reply")
		expect(t, near, "reply")
	})
}
