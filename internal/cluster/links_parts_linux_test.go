package cluster

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/faultnet"
)

// TestReaddresser: the address is replaced wherever the stream is cut, and
// nothing else is.
func TestReaddresser(t *testing.T) {
	for in, want := range map[string]string{
		"*2\r\n$9\r\n127.0.0.9\r\n":               "*2\r\n$9\r\n127.0.0.1\r\n",
		"127.0.0.9127.0.0.9":                      "127.0.0.1127.0.0.1",
		"1127.0.0.9 127.0.127.0.0.9":              "1127.0.0.1 127.0.127.0.0.1",
		"127.0.0.1 127.0.0.8 9 127.0.9 12127.0.0": "127.0.0.1 127.0.0.8 9 127.0.9 12127.0.0",
		"": "",
	} {
		for i := range len(in) + 1 {
			for j := i; j <= len(in); j++ {
				out, r := []byte(in), readdresser{from: backend.LinkHost, to: backend.ClientHost}
				for _, piece := range [][]byte{out[:i], out[i:j], out[j:]} {
					r.turn(piece)
				}
				if string(out) != want {
					t.Fatalf("%q cut at %d and %d became %q, want %q", in, i, j, out, want)
				}
			}
		}
	}
}

// TestDialledBy: a connection belongs to the process that opened it, also on a
// socket for IPv6, and to no process once it is closed.
func TestDialledBy(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ours, others := []int{os.Getppid(), os.Getpid()}, []int{os.Getppid()}
	for _, dialler := range []net.Dialer{{}, {LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 5)}}} {
		conn, err := dialler.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if pid, err := dialledBy(accepted, ours); err != nil || pid != os.Getpid() {
			t.Errorf("it is %d's, %v", pid, err)
		}
		if pid, err := dialledBy(accepted, others); !errors.Is(err, errStranger) {
			t.Errorf("it is %d's, %v", pid, err)
		}
		near, far := conn.LocalAddr().(*net.TCPAddr), conn.RemoteAddr().(*net.TCPAddr)
		asked, err := diagnosedInode(near, far)
		listed, err2 := listedInode(near, far)
		if err != nil || err2 != nil || asked != listed {
			t.Errorf("socket %s, %v; in the table %s, %v", asked, err, listed, err2)
		}
		conn.Close()
		if pid, err := dialledBy(accepted, ours); !errors.Is(err, errHungUp) {
			t.Errorf("closed, it is %d's, %v", pid, err)
		}
		if listed, err := listedInode(near, far); !errors.Is(err, errHungUp) {
			t.Errorf("closed, it is %s in the table, %v", listed, err)
		}
		accepted.Close()
	}
}

// TestHungUp: the message of a client that closed the connection before it could
// be identified is passed on, unless a rule may apply to it.
func TestHungUp(t *testing.T) {
	listen := func() (net.Listener, int) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l, l.Addr().(*net.TCPAddr).Port
	}
	server, port := listen()
	gate, _ := listen()
	l := &links{ways: map[way]*faultnet.Proxy{}, cuts: map[string][]*faultnet.Proxy{}}
	for _, from := range []string{"a", "b"} {
		proxy := faultnet.NewProxy(server.Addr().String())
		defer proxy.Close()
		l.ways[way{from, "c", port}] = proxy
	}
	caller, err := net.Dial("tcp", gate.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := gate.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(caller, "call me back"); err != nil {
		t.Fatal(err)
	}
	caller.Close()
	l.lead(conn, "c", port, false)
	received, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer received.Close()
	if message, err := io.ReadAll(received); err != nil || string(message) != "call me back" {
		t.Errorf("the server received %q, %v", message, err)
	}
	if err := l.cut("cut", map[string]bool{"a": true}, faultnet.Rule{CutIn: true, CutOut: true}); err != nil {
		t.Fatal(err)
	}
	if l.whichever("c", port) != nil {
		t.Error("it may have been a, who is cut off")
	}
	l.lift("cut")
	if l.whichever("c", port) == nil || l.whichever("d", port) != nil {
		t.Error("without rules every way to c, and none to d")
	}
}
