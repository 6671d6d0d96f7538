package reference

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"
)

// Server serves all controls. Its methods are safe for concurrent use.
type Server struct {
	listener net.Listener
	running  sync.WaitGroup

	mu       sync.Mutex
	locks    locks
	newest   map[[16]byte]int64 // generation of each client's newest connection
	conns    map[net.Conn]bool
	requests map[op]int64
	closed   bool
}

// NewServer listens on the unix socket at path, which must not exist yet, and
// serves until Close. The seed chooses the attempts on which the broken locks
// fail.
func NewServer(path string, seed uint64) (*Server, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("serve the reference lock on %s: %w", path, err)
	}
	s := &Server{
		listener: l,
		locks:    locks{seed: seed, keys: map[string]*lock{}},
		newest:   map[[16]byte]int64{},
		conns:    map[net.Conn]bool{},
		requests: map[op]int64{},
	}
	s.running.Add(1)
	go s.accept()
	return s, nil
}

// Close stops serving, closes every connection and removes the socket.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	err := s.listener.Close()
	for c := range s.conns {
		_ = c.Close() // it may be closing already
	}
	s.mu.Unlock()
	s.running.Wait()
	return err
}

// Counters returns how many requests the server has carried out, by name: acquire,
// release, extend, cleanup.
func (s *Server) Counters() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int64{}
	for o, n := range maps.All(s.requests) {
		if o != opHello {
			out[o.String()] += n
		}
	}
	return out
}

// Misdeeds returns how often the defect of a broken lock has acted.
func (s *Server) Misdeeds() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locks.misdeeds
}

func (s *Server) accept() {
	defer s.running.Done()
	for {
		c, err := s.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Probably out of file descriptors: back off.
			time.Sleep(10 * time.Millisecond)
			continue
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			_ = c.Close()
			return
		}
		s.conns[c] = true
		s.running.Add(1)
		s.mu.Unlock()
		go s.serve(c)
	}
}

func (s *Server) serve(c net.Conn) {
	defer s.running.Done()
	var from caller
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
		if s.newest[from.client] == from.generation {
			delete(s.newest, from.client)
		}
	}()
	in, buf, out := bufio.NewReaderSize(c, frameMax), make([]byte, frameMax), make([]byte, 0, answerSize)
	for {
		f, err := readFrame(in, buf)
		if err != nil {
			return
		}
		st, fence, ok := s.handle(&from, &f)
		if !ok {
			return
		}
		if _, err := c.Write(appendAnswer(out, st, fence)); err != nil {
			return
		}
	}
}

// caller is the client of a connection.
type caller struct {
	client     [16]byte
	generation int64
}

// handle carries out one request; !ok means that the connection is not valid. A
// client that lost a connection returns with a newer generation, and from then
// on unread requests on the old connection are dropped: otherwise a late
// acquire could take effect after its own clean-up was answered.
func (s *Server) handle(from *caller, f *frame) (status, uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[f.op]++
	if f.op == opHello {
		if f.n <= s.newest[f.id] || from.generation != 0 {
			return 0, 0, false
		}
		*from = caller{f.id, f.n}
		s.newest[f.id] = f.n
		return statusDone, 0, true
	}
	if from.generation == 0 || s.newest[from.client] != from.generation {
		return 0, 0, false
	}
	st, fence := s.locks.handle(f, time.Now())
	return st, fence, st != 0
}
