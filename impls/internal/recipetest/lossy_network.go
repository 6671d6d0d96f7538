package recipetest

import (
	"context"
	"io"
	"net"
	"sync/atomic"
)

// lossyNetwork dials connections that, while lossy, close when an answer
// arrives, which is lost.
type lossyNetwork struct{ lossy atomic.Bool }

func (n *lossyNetwork) set(lossy bool) { n.lossy.Store(lossy) }

func (n *lossyNetwork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &lossyConn{c, n}, nil
}

type lossyConn struct {
	net.Conn
	network *lossyNetwork
}

func (c *lossyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.network.lossy.Load() {
		_ = c.Close()
		return 0, io.EOF
	}
	return n, err
}
