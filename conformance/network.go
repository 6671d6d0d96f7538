package conformance

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/lockbench/lockbench/impls"
)

// state is what a client's network does.
type state int32

const (
	alive state = iota
	// muted: requests arrive, answers are lost.
	muted
	// dead: nothing arrives in either direction, and no connection can be made.
	dead
	// unplugged: connections end, and no connection can be made.
	unplugged
)

// network is the network of one client. Its methods are safe for concurrent
// use. A connection through which something was lost never heals: a real one
// would have repeated it, or ended.
type network struct {
	now atomic.Int32
	// lost counts the answers that were lost, refused the dials.
	lost, refused atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]bool
}

var errDead = errors.New("network is unreachable, by the test's will")

// set changes the state. Coming back to life ends the present connections, and
// so does unplugging.
func (n *network) set(s state) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now.Store(int32(s))
	if s == alive || s == unplugged {
		for c := range n.conns {
			_ = c.Close()
		}
		clear(n.conns)
	}
}

// dial wraps a dialer.
func (n *network) dial(base impls.DialFunc) impls.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if s := state(n.now.Load()); s == dead || s == unplugged {
			n.refused.Add(1)
			return nil, errDead
		}
		c, err := base(ctx, network, address)
		if err != nil {
			return nil, err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.conns == nil {
			n.conns = map[net.Conn]bool{}
		}
		n.conns[c] = true
		return &lossyConn{Conn: c, network: n}, nil
	}
}

type lossyConn struct {
	net.Conn
	network *network
}

func (c *lossyConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || state(c.network.now.Load()) == alive {
			return n, err
		}
		c.network.lost.Add(1)
	}
}

func (c *lossyConn) Write(b []byte) (int, error) {
	if state(c.network.now.Load()) == dead {
		return len(b), nil
	}
	return c.Conn.Write(b)
}
