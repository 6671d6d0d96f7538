//go:build !linux

package cluster

import "net"

// dialledBy is not supported here; see noLinks.
func dialledBy(net.Conn, []int) (int, error) { return 0, errHungUp }
