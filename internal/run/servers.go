package run

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/reference"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/scenario"
)

// servers are the servers of a scenario's clients.
type servers struct {
	addresses []string
	directory []string
	account   impls.Account
	tls       *impls.TLS  // nil: not encrypted
	secure    *tls.Config // of tls
	space     string      // see impls.Config
	info      scenario.ClusterInfo
	cluster   *cluster.Cluster  // nil for the reference backend and external servers
	reference *reference.Server // nil for other backends
	external  *cluster.External // nil for all others
}

// servers finds the scenario's cluster, or serves the reference lock itself.
func (r *runner) servers(i int, sc scenario.Scenario, info impls.Info) (servers, func(), error) {
	if info.Backend == BackendReference {
		path := filepath.Join(r.sup.Dir(), fmt.Sprintf("reference-%d.sock", i))
		srv, err := reference.NewServer(path, sc.Seed)
		if err != nil {
			return servers{}, nil, err
		}
		ci := scenario.ClusterInfo{Backend: info.Backend, Topology: sc.Topology, Environment: "controller", Product: "lockbench reference", Version: r.Version, Durability: "none (memory of the controller)"}
		return servers{addresses: []string{path}, info: ci, reference: srv}, func() { _ = srv.Close() }, nil
	}
	if e := r.externals[r.keys[i]]; e != nil {
		s, err := visited(e, r.space())
		return s, func() {}, err
	}
	c := r.cluster(i)
	if c == nil {
		return servers{}, nil, fmt.Errorf("no %s cluster is up", info.Backend)
	}
	return servers{addresses: c.Addresses(), directory: c.Directory(), account: c.Account(), info: c.Info(), cluster: c}, func() {}, nil
}

// config is what a client of the controller's own is opened with.
func (s servers) config(sc scenario.Scenario, dial impls.DialFunc) impls.Config {
	return impls.Config{
		Addresses: s.addresses, Topology: sc.Topology, Directory: s.directory, Account: s.account, TLS: s.secure, Space: s.space, Dial: dial,
		Clock: impls.SystemClock(), Wait: impls.NewUniform(sc.Poll.Min, sc.Poll.Max, sc.Seed),
		TTL: sc.TTL.D(), LockDelay: sc.LockDelay.D(), Timeout: sc.Timeout.D(),
	}
}

const (
	// healthPatience limits how long servers may take to answer after the load.
	healthPatience = 10 * time.Second
	// recoveryPatience limits how long servers may take to have their roles
	// and links as before, once a fault was healed.
	recoveryPatience = 30 * time.Second
)

// recovered asks the servers whether they are healthy, also when ctx is over:
// again and again where a fault has hit them.
func (s servers) recovered(ctx context.Context, sc scenario.Scenario) error {
	if !hurtsServers(sc) {
		return s.healthy(ctx)
	}
	patience := recoveryPatience
	if ctx.Err() != nil {
		patience = healthPatience // the user waits for the end
	}
	for deadline := time.Now().Add(patience); ; {
		err := s.healthy(ctx)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(healthPause) // also when ctx is over
	}
}

// healthPause is the time between two looks at servers that recover.
const healthPause = 50 * time.Millisecond

// healthy asks the servers once, also when ctx is over.
func (s servers) healthy(ctx context.Context) error {
	if s.cluster == nil {
		return nil
	}
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthPatience)
	defer cancel()
	return s.cluster.Healthy(asking)
}
