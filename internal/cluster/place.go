package cluster

import (
	"context"
	"net/netip"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/supervise"
)

// place is where the servers of a cluster run.
type place interface {
	// find searches a backend's server there, and checks what the topology needs.
	find(ctx context.Context, b backend.Backend, spec Spec) (backend.Binary, error)
	// open prepares a cluster, whose data are in dir, for so many servers.
	open(ctx context.Context, dir string, servers int) error
	// host is the address of the i-th server, and clients are the addresses that
	// clients come from. They are fixed once it is open.
	host(i int) string
	clients() netip.Prefix
	// start starts a command for a node. Its pid is as the command itself sees it.
	start(ctx context.Context, n *Node, cmd supervise.Command) (p backend.Process, pid int, err error)
	// close removes what is left when all processes have ended.
	close(ctx context.Context) error
}

// processes places servers as child processes on loopback.
type processes struct{ run *supervise.Run }

func (processes) find(_ context.Context, b backend.Backend, spec Spec) (backend.Binary, error) {
	return findFor(b, spec.Topology, spec.Binary)
}

func (processes) open(context.Context, string, int) error { return nil }
func (processes) host(int) string                         { return backend.ClientHost }
func (processes) clients() netip.Prefix                   { return netip.MustParsePrefix("127.0.0.0/8") }
func (processes) close(context.Context) error             { return nil }

func (p processes) start(_ context.Context, _ *Node, cmd supervise.Command) (backend.Process, int, error) {
	child, err := p.run.Start(cmd)
	if err != nil {
		return nil, 0, err
	}
	return child, child.PID(), nil
}

// findFor searches a backend's server, and checks what a topology needs besides.
func findFor(b backend.Backend, topology, override string) (backend.Binary, error) {
	binary, err := backend.Find(b, override)
	if r, ok := b.(backend.Requiring); ok && err == nil {
		err = r.Require(binary, topology)
	}
	return binary, err
}
