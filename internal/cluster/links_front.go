package cluster

import (
	"io"
	"net"
	"sync"

	"github.com/lockbench/lockbench/internal/backend"
)

// front is a proxy for clients of a server that reports the addresses of others (a
// sentinel). Such a server has the addresses of their links: the front replaces
// these by the addresses that clients use.
type front struct {
	listener net.Listener
	serves   sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

// openFront listens at address in place of the server at upstream.
func openFront(address, upstream string) (*front, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	f := &front{listener: listener, conns: map[net.Conn]bool{}}
	f.serves.Go(func() {
		accept(listener, func(conn net.Conn) { f.serves.Go(func() { f.serve(conn, upstream) }) })
	})
	return f, nil
}

// serve returns when either side has closed the connection.
func (f *front) serve(client net.Conn, upstream string) {
	defer f.release(client)
	if !f.keep(client) {
		return
	}
	server, err := net.Dial("tcp", upstream)
	if err != nil {
		return
	}
	defer f.release(server)
	if !f.keep(server) {
		return
	}
	f.serves.Go(func() {
		if _, err := io.Copy(server, client); err != nil {
			f.release(server)
			return
		}
		_ = server.(*net.TCPConn).CloseWrite() // its last answer may be under way
	})
	_, _ = io.Copy(client, &readdressed{Conn: server, readdresser: readdresser{from: backend.LinkHost, to: backend.ClientHost}})
}

// keep notes a connection, to be closed with the front.
func (f *front) keep(conn net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.conns[conn] = true
	}
	return !f.closed
}

func (f *front) release(conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, conn)
	conn.Close()
}

func (f *front) close() error {
	err := f.listener.Close()
	f.mu.Lock()
	f.closed = true
	for conn := range f.conns {
		conn.Close()
	}
	f.mu.Unlock()
	f.serves.Wait()
	return err
}
