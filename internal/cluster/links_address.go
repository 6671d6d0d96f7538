package cluster

import "net"

// readdresser replaces one address by another in what goes by. The two differ in
// their last letter only: so nothing else of a message changes, and nothing has
// to be held back, however the stream is cut into pieces.
type readdresser struct {
	from, to string
	seen     int // letters of from that the stream ended with so far
}

// turn replaces the address in the next piece of the stream.
func (r *readdresser) turn(piece []byte) {
	last := len(r.from) - 1
	for i, letter := range piece {
		switch {
		case letter != r.from[r.seen]:
			// What has been seen holds no other beginning of the address.
			r.seen = 0
			if letter == r.from[0] {
				r.seen = 1
			}
		case r.seen == last:
			piece[i], r.seen = r.to[last], 0
		default:
			r.seen++
		}
	}
}

// readdressed is a connection on which the other end sends addresses.
type readdressed struct {
	net.Conn
	readdresser
}

func (r *readdressed) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.turn(b[:n])
	return n, err
}

// CloseWrite ends one direction of the connection.
func (r *readdressed) CloseWrite() error {
	if half, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return r.Conn.Close()
}
