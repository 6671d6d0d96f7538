package recipetest

import (
	"context"
	"io"
	"net"
	"sync/atomic"
)

// deaf is a network whose connections end, while it is told to, when an answer
// comes, which is lost.
type deaf struct{ now atomic.Bool }

func (d *deaf) set(now bool) { d.now.Store(now) }

func (d *deaf) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &deafConn{c, d}, nil
}

type deafConn struct {
	net.Conn
	deaf *deaf
}

func (c *deafConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.deaf.now.Load() {
		_ = c.Close()
		return 0, io.EOF
	}
	return n, err
}
