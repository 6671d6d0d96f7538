package zookeeper

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"time"
)

// scripted is a connection whose reads give what a server once said, in
// pieces of a given size.
type scripted struct {
	net.Conn
	in    bytes.Buffer
	piece int
}

func (s *scripted) Read(b []byte) (int, error)  { return s.in.Read(b[:min(len(b), s.piece)]) }
func (s *scripted) Write(b []byte) (int, error) { return len(b), nil }
func (s *scripted) Close() error                { return nil }

func packet(words ...uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(4*len(words)))
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

const (
	ping  = ^uint32(1) // xid -2
	event = ^uint32(0) // xid -1
)

func TestFrameObserver(t *testing.T) {
	for piece := 1; piece < 40; piece++ {
		var now, connected, answeredAt time.Time
		var timeout time.Duration
		var session int64
		var opcode, failure int32
		base := time.Now()
		s := &scripted{piece: piece}
		c := &frameObserver{Conn: s, now: func() time.Time { return now }, watches: &watchSet{},
			connect: func(sent time.Time, d time.Duration, id int64) { connected, timeout, session = sent, d, id },
			replied: func(sent time.Time, op, code int32) { answeredAt, opcode, failure = sent, op, code }}
		send := func(at int, b []byte) {
			now = base.Add(time.Duration(at) * time.Second)
			if _, err := c.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		receive := func(b []byte) {
			s.in.Write(b)
			buf := make([]byte, 64)
			for s.in.Len() > 0 {
				if _, err := c.Read(buf); err != nil {
					t.Fatal(err)
				}
			}
		}
		at := func(what string, got time.Time, want int) {
			t.Helper()
			if !got.Equal(base.Add(time.Duration(want) * time.Second)) {
				t.Errorf("pieces of %d: %s: %v after the start, want %d s", piece, what, got.Sub(base), want)
			}
		}
		send(1, packet(0, 0, 0, 4000, 0, 0))
		receive(packet(0, 3000, 7, 9, 16, 1, 2, 3, 4))
		at("connect", connected, 1)
		if timeout != 3*time.Second || session != 7<<32+9 {
			t.Errorf("session %x of %v", session, timeout)
		}
		send(2, packet(1, 11))
		send(3, packet(ping, 11))
		receive(packet(event, 0, 0, 0, 1, 2, 3))
		if !answeredAt.IsZero() {
			t.Error("an event proves nothing")
		}
		receive(packet(1, 0, 5, 0))
		at("reply", answeredAt, 2)
		if opcode != 11 || failure != 0 {
			t.Errorf("pieces of %d: a reply to %d with code %d", piece, opcode, failure)
		}
		send(4, packet(ping, 11))
		receive(packet(ping, 0, 0, 0))
		at("first ping", answeredAt, 3)
		receive(append(packet(ping, 0, 0, 0), packet(event, 0, 0, 0)...))
		at("second ping", answeredAt, 4)
		receive(packet(77, 0, 0, 0)) // never asked
		at("reply to nothing", answeredAt, 4)
		send(5, packet(2, 4))
		receive(packet(2, 0, 0, ^uint32(100))) // no such node
		at("refusal", answeredAt, 5)
		if opcode != 4 || failure != -101 {
			t.Errorf("pieces of %d: a refusal of %d with code %d", piece, opcode, failure)
		}
	}
}
