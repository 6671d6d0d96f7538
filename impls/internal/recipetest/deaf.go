package recipetest

import (
	"context"
	"net"
	"sync/atomic"
)

// deaf is a network that loses answers while it is told to.
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
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.deaf.now.Load() {
			return n, err
		}
	}
}
