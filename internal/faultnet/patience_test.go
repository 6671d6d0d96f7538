package faultnet

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// waiting is a connection whose proxy dials an upstream again and again that does
// not listen.
func waiting(t *testing.T) (*Proxy, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := NewProxy(l.Addr().String())
	p.Patience = time.Hour
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	p.Serve(far)
	t.Cleanup(func() {
		near.Close()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if !eventually(func() bool { return members(p) == 1 }) {
		t.Fatal("no connection waits")
	}
	return p, near
}

func members(p *Proxy) int {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	return len(p.hub.pairs)
}

// Patience ends with a reset, and when the client closes its connection.
func TestPatienceEnds(t *testing.T) {
	t.Run("reset", func(t *testing.T) {
		p, near := waiting(t)
		if err := p.Apply("reset", Rule{Reset: true}); err != nil {
			t.Fatal(err)
		}
		_ = near.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := near.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("who waited saw %v", err)
		}
	})
	t.Run("gone", func(t *testing.T) {
		p, near := waiting(t)
		near.Close()
		if !eventually(func() bool { return members(p) == 0 }) {
			t.Error("upstream is dialed after the client has closed its connection")
		}
	})
	t.Run("cut", func(t *testing.T) {
		p, _ := waiting(t)
		if err := p.Apply("cut", Rule{CutIn: true, CutOut: true}); err != nil {
			t.Fatal(err)
		}
		if !eventually(func() bool { return p.hub.held("cut") == 1 }) {
			t.Error("the cut does not hold up who waits")
		}
		p.Lift("cut")
	})
}

// held is how many new connections a rule has held up.
func (h *hub) held(id string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rules[h.find(id)].dials.Load()
}
