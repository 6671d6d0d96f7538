package netdrop

import (
	"errors"
	"net/netip"
)

// ErrUnavailable: packets cannot be dropped here; the message has the reason.
var ErrUnavailable = errors.New("packets cannot be dropped by the kernel here")

// Pair is a client and a server, both on IPv4. The client is the address that
// it dials from, with any port.
type Pair struct {
	Client netip.Addr
	Server netip.AddrPort
}
