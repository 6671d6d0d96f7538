package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"

	"github.com/lockbench/lockbench/internal/backend"
)

// freePorts draws count ports that no process listens on. They lie outside the
// range from which the system gives ports to outgoing connections, so that
// only another server could take one before ours does; then the start is tried
// again with others.
func freePorts(count int) ([]int, error) {
	low, high := ephemeral()
	var ports []int
	seen := map[int]bool{}
	for range 200 * count {
		// Below 10000 live the servers that people run by hand.
		p := 10000 + rand.IntN(65536-10000)
		if p >= low && p <= high || seen[p] {
			continue
		}
		seen[p] = true
		l, err := net.Listen("tcp", backend.HostPort(backend.ClientHost, p))
		if err != nil {
			continue
		}
		l.Close()
		if ports = append(ports, p); len(ports) == count {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("no %d free loopback ports between 10000 and 65535 outside %d to %d", count, low, high)
}

// ephemeral is the range of outgoing connections' ports; where the system does
// not report it, that of IANA.
func ephemeral() (low, high int) {
	data, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		if n, _ := fmt.Sscan(string(data), &low, &high); n == 2 && high-low < 50000 {
			return low, high
		}
	}
	return 49152, 65535
}
