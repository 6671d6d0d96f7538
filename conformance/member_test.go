package conformance_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// TestMemberKilled kills one of three servers, which may be their leader, while
// clients of all three contend for a lock that promises to go on, and numbers
// its grants: no two clients hold the lock at once, tokens grow, and
// everybody goes on with the two that are left.
func TestMemberKilled(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{"etcd", "zookeeper"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			settings := map[string]string{}
			if backend == "zookeeper" {
				settings = clustertest.FastZooKeeper()
			}
			c := clustertest.Start(t, backend, "quorum", settings)
			for _, r := range all.Recipes() {
				if i := r.Info(); i.Backend == backend && i.Fencing && i.Promises(impls.Available) {
					t.Run(r.Info().ID, func(t *testing.T) { killedUnder(t, c, r) })
				}
			}
		})
	}
}

// killedUnder has clients contend, kills the last server in the middle, and
// waits until each client has been granted the lock some more times.
func killedUnder(t *testing.T, c *cluster.Cluster, r impls.Recipe) {
	const clients, before, after = 4, 20, 20
	cfg := impls.Config{Addresses: c.Addresses(), Account: c.Account(), Clock: impls.SystemClock(),
		Dial: new(net.Dialer).DialContext, TTL: shortest(t, r, c.Limits()), Timeout: 2 * time.Second}
	const key = "killed"
	if err := r.Prepare(t.Context(), cfg, []string{key}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var inside atomic.Int64
	var last atomic.Uint64
	var running, ready sync.WaitGroup
	ready.Add(clients)
	killed := make(chan struct{})
	for range clients {
		client, err := r.Open(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		pair := func() bool {
			a := newAttempt()
			h, err := client.Acquire(ctx, key, a)
			if err == nil {
				if n := inside.Add(1); n > 1 {
					t.Errorf("%d hold the lock", n)
				}
				if was := last.Swap(h.Fence()); was >= h.Fence() {
					t.Errorf("token %d after %d", h.Fence(), was)
				}
				inside.Add(-1)
				err = h.Release(ctx)
			}
			for errors.Is(err, impls.ErrUnknown) && ctx.Err() == nil {
				if cerr := client.Cleanup(ctx, key, a); impls.Definite(cerr) {
					break
				}
			}
			return err == nil
		}
		running.Go(func() {
			for n := 0; n < before && ctx.Err() == nil; {
				if pair() {
					n++
				}
			}
			ready.Done()
			<-killed
			for n := 0; n < after; {
				if ctx.Err() != nil {
					t.Errorf("%d grants of %d in two minutes after a server was killed", n, after)
					return
				}
				if pair() {
					n++
				}
			}
		})
	}
	ready.Wait()
	nodes := c.Nodes()
	close(killed)
	if err := nodes[len(nodes)-1].Process.Kill(); err != nil {
		t.Error(err)
	}
	running.Wait()
}
