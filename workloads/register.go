package workloads

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
)

// Register is the guarded resource: what a lock is there to protect. The
// controller serves it over a unix socket, outside the network that faults
// reach.
//
// It has two registers per key, each a number that begins at 0. The plain one
// carries fencing tokens and enforces nothing; it only counts the writes whose
// token was below the highest it had seen. The fenced one refuses every read
// and write whose token is below the highest it has seen, or that has none.
// Reads raise the highest seen as writes do: otherwise a reader with an old
// token could still write after a younger reader had read, and the younger
// one's write would silently undo it.
//
// It is safe for concurrent use.
type Register struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
	cells  map[cellID]*cell
}

type cellID struct {
	key    uint32
	fenced bool
}

type cell struct {
	value, highest            uint64
	accepted, stale, rejected uint64
}

// Final is what one register held at the end, and how it came to that.
type Final struct {
	Key          uint32
	Fenced       bool
	Value        uint64
	Accepted     uint64 // writes carried out
	Stale        uint64 // of those, with a token below the highest seen
	Rejected     uint64 // reads and writes refused
	HighestToken uint64
}

// ServeRegister serves fresh registers on a unix socket at path. The caller
// owes a Close.
func ServeRegister(path string) (*Register, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("serve the guarded register: %w", err)
	}
	r := &Register{listener: l, conns: map[net.Conn]struct{}{}, cells: map[cellID]*cell{}}
	r.wg.Go(r.accept)
	return r, nil
}

// Close stops serving and removes the socket. Finals can still be asked.
func (r *Register) Close() error {
	r.mu.Lock()
	r.closed = true
	err := r.listener.Close()
	for c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close the guarded register: %w", err)
	}
	return nil
}

// Finals lists every register that was used, by key, the plain one first.
func (r *Register) Finals() []Final {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Final, 0, len(r.cells))
	for id, c := range r.cells {
		list = append(list, Final{
			Key: id.key, Fenced: id.fenced, Value: c.value, HighestToken: c.highest,
			Accepted: c.accepted, Stale: c.stale, Rejected: c.rejected,
		})
	}
	slices.SortFunc(list, func(a, b Final) int {
		if a.Key == b.Key && a.Fenced != b.Fenced {
			if b.Fenced {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Key, b.Key)
	})
	return list
}

func (r *Register) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return // closed; a worker that cannot connect says so itself
		}
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			_ = c.Close()
			return
		}
		r.conns[c] = struct{}{}
		r.wg.Go(func() { r.serve(c) })
		r.mu.Unlock()
	}
}

func (r *Register) serve(c net.Conn) {
	defer func() {
		r.mu.Lock()
		delete(r.conns, c)
		r.mu.Unlock()
		_ = c.Close()
	}()
	var frame [frameSize]byte
	for {
		if _, err := io.ReadFull(c, frame[:]); err != nil {
			return // the client left
		}
		var q registerCall
		q.get(&frame)
		a := r.do(q)
		a.put(&frame)
		if _, err := c.Write(frame[:]); err != nil {
			return
		}
	}
}

// do carries out one call. All of it happens under one lock, so that the order
// of the calls is the order in which the registers saw them.
func (r *Register) do(q registerCall) registerAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := cellID{q.key, q.fenced}
	c := r.cells[id]
	if c == nil {
		c = &cell{}
		r.cells[id] = c
	}
	if q.fenced && (q.token == 0 || q.token < c.highest) {
		c.rejected++
		return registerAnswer{rejected: true, highest: c.highest}
	}
	stale := q.token < c.highest && q.token != 0
	c.highest = max(c.highest, q.token)
	if !q.write {
		return registerAnswer{value: c.value, highest: c.highest}
	}
	c.value = q.value
	c.accepted++
	if stale {
		c.stale++
	}
	return registerAnswer{value: c.value, highest: c.highest, stale: stale}
}

// registerCall and registerAnswer travel as frames of one size:
//
//	0     flags: of a call 1 write, 2 fenced; of an answer 1 rejected, 2 stale
//	4-7   key (calls)
//	8-15  token, or the highest token seen
//	16-23 value
const frameSize = 24

type registerCall struct {
	write, fenced bool
	key           uint32
	token, value  uint64
}

type registerAnswer struct {
	rejected, stale bool
	highest, value  uint64
}

func (q *registerCall) put(b *[frameSize]byte) {
	b[0] = bit(q.write, 1) | bit(q.fenced, 2)
	binary.LittleEndian.PutUint32(b[4:], q.key)
	binary.LittleEndian.PutUint64(b[8:], q.token)
	binary.LittleEndian.PutUint64(b[16:], q.value)
}

func (q *registerCall) get(b *[frameSize]byte) {
	q.write, q.fenced = b[0]&1 != 0, b[0]&2 != 0
	q.key = binary.LittleEndian.Uint32(b[4:])
	q.token = binary.LittleEndian.Uint64(b[8:])
	q.value = binary.LittleEndian.Uint64(b[16:])
}

func (a *registerAnswer) put(b *[frameSize]byte) {
	b[0] = bit(a.rejected, 1) | bit(a.stale, 2)
	binary.LittleEndian.PutUint64(b[8:], a.highest)
	binary.LittleEndian.PutUint64(b[16:], a.value)
}

func (a *registerAnswer) get(b *[frameSize]byte) {
	a.rejected, a.stale = b[0]&1 != 0, b[0]&2 != 0
	a.highest = binary.LittleEndian.Uint64(b[8:])
	a.value = binary.LittleEndian.Uint64(b[16:])
}

func bit(set bool, b byte) byte {
	if set {
		return b
	}
	return 0
}

// registerClient is one client's connection to the register. It is for one
// goroutine.
type registerClient struct {
	conn  net.Conn
	frame [frameSize]byte
}

func openRegister(path string) (*registerClient, error) {
	c, err := net.Dial("unix", path)
	if err != nil {
		return nil, fmt.Errorf("connect to the guarded register: %w", err)
	}
	return &registerClient{conn: c}, nil
}

// errRegister: the call may or may not have been carried out.
var errRegister = errors.New("the guarded register did not answer")

func (r *registerClient) do(q registerCall) (a registerAnswer, err error) {
	q.put(&r.frame)
	if _, err := r.conn.Write(r.frame[:]); err != nil {
		return a, fmt.Errorf("%w: %w", errRegister, err)
	}
	if _, err := io.ReadFull(r.conn, r.frame[:]); err != nil {
		return a, fmt.Errorf("%w: %w", errRegister, err)
	}
	a.get(&r.frame)
	return a, nil
}

func (r *registerClient) close() error {
	if err := r.conn.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("leave the guarded register: %w", err)
	}
	return nil
}
