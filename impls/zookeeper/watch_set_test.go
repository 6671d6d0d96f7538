package zookeeper

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// naming is a packet that names a path, between words before and a flag after.
func naming(before []uint32, path string, after ...byte) []byte {
	b := make([]byte, 4)
	for _, w := range before {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(path))), path...)
	b = append(b, after...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// scriptedConn is a connection of a session whose packets of both sides the test writes.
type scriptedConn struct {
	*frameObserver
	in *bytes.Buffer
}

func newScriptedConn(w *watchSet, id uint32) scriptedConn {
	s := &scripted{piece: 7}
	c := scriptedConn{&frameObserver{Conn: s, now: time.Now, watches: w, patience: time.Hour,
		connect: func(time.Time, time.Duration, int64) {}, replied: func(time.Time, int32, int32) {}}, &s.in}
	c.send(packet(0, 0, 0, 4000, 0, 0))
	c.receive(packet(0, 3000, 0, id, 16, 1, 2, 3, 4))
	return c
}

func (c scriptedConn) send(b []byte) { _, _ = c.Write(b) }

func (c scriptedConn) receive(b []byte) error {
	c.in.Write(b)
	_, err := io.ReadFull(c, make([]byte, len(b)))
	return err
}

// TestWatchSet follows every answer and event.
func TestWatchSet(t *testing.T) {
	const noNode = ^uint32(100)
	for name, tt := range map[string]struct {
		opcode uint32
		flag   byte
		code   uint32
		begins bool
		ends   []uint32 // the types of events that end it
	}{
		"data":               {opGetData, 1, 0, true, []uint32{2, 3}},
		"data, no watch":     {opGetData, 0, 0, false, nil},
		"data of none":       {opGetData, 1, noNode, false, nil},
		"exists":             {opExists, 1, 0, true, []uint32{2, 3}},
		"exists not":         {opExists, 1, noNode, true, []uint32{1, 2, 3}},
		"exists, in trouble": {opExists, 1, ^uint32(3), false, nil},
		"children":           {opGetChildren, 1, 0, true, []uint32{2, 4}},
		"children2":          {opGetChildren2, 1, 0, true, []uint32{2, 4}},
		"another request":    {5, 1, 0, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for kind := uint32(1); kind <= 4; kind++ {
				w := &watchSet{}
				c := newScriptedConn(w, 1)
				c.send(naming([]uint32{1, tt.opcode}, "/a", tt.flag))
				c.receive(packet(1, 0, 5, tt.code, 1, 2, 3, 4, 5, 6))
				if w.any() != tt.begins {
					t.Fatalf("watched: %t", w.any())
				}
				c.receive(naming([]uint32{event, 0, 0, 0, kind, 3}, "/another"))
				if w.any() != tt.begins {
					t.Errorf("another node's event ended it")
				}
				c.receive(naming([]uint32{event, 0, 0, 0, kind, 3}, "/a"))
				ends := bytes.Contains(packet(tt.ends...)[4:], packet(kind)[4:])
				if w.any() != (tt.begins && !ends) {
					t.Errorf("after an event of type %d it is watched: %t", kind, w.any())
				}
			}
		})
	}
}

// TestWatchesFirst: on a session's next connection no reply is let through before
// the watches are asked for, and none at all if that never happens.
func TestWatchesFirst(t *testing.T) {
	w := &watchSet{}
	c := newScriptedConn(w, 1)
	c.send(naming([]uint32{1, opGetData}, "/a", 1))
	if err := c.receive(packet(1, 0, 5, 0)); err != nil {
		t.Fatal(err)
	}
	reply := func(c scriptedConn) <-chan error {
		c.send(packet(2, 5))
		done := make(chan error, 1)
		go func() { done <- c.receive(packet(2, 0, 6, 0)) }()
		return done
	}

	c = newScriptedConn(w, 1)
	done := reply(c)
	select {
	case <-done:
		t.Fatal("a reply came before the watches were asked for")
	case <-time.After(20 * time.Millisecond): // for a wrong one to show
	}
	c.send(packet(3, opSetWatches))
	if err := <-done; err != nil {
		t.Error(err)
	}

	c = newScriptedConn(w, 1)
	done = reply(c)
	_ = c.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a reply on a closed connection: %v", err)
	}

	c = newScriptedConn(w, 1)
	c.patience = 0 // the watch set was wrong
	if err := <-reply(c); err != nil {
		t.Error(err)
	}

	newScriptedConn(w, 0) // the session has expired
	if err := <-reply(newScriptedConn(w, 2)); err != nil {
		t.Error(err)
	}
}

// rewatches: requests that wait for a new connection, while the
// driver asks for its watches again, do not get in its way (as the race detector
// would see), and the watch is kept.
func rewatches(t *testing.T, addresses []string) {
	d, err := open(t.Context(), config(addresses), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close(true)
	const path = "/watched"
	if _, err := d.conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	_, _, events, err := d.conn.GetW(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		d.cut()
		for answered := false; !answered; {
			_, _, err := d.conn.Exists(path)
			answered = err == nil
		}
	}
	if _, err := d.conn.Set(path, []byte("x"), -1); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Type != zk.EventNodeDataChanged {
		t.Errorf("the watch ended with %+v", e)
	}
}
