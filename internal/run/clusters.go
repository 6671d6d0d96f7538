package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/scenario"
)

// startClusters brings all servers up side by side, and writes
// environment.json.
func (r *runner) startClusters(ctx context.Context) error {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for _, n := range r.needs {
		wg.Go(func() {
			var (
				c   *cluster.Cluster
				e   *cluster.External
				why string
				err error
			)
			if n.key.environment == scenario.EnvExternal {
				e, why, err = r.visit(ctx, n)
			} else {
				c, err = r.startCluster(ctx, n, n.name())
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case why != "":
				r.missing[n.key], r.environment.Missing[n.key.backend] = why, why
				r.Progress.Note(why)
			case e != nil:
				r.externals[n.key] = e
			case errors.Is(err, cluster.ErrMissing):
				r.missing[n.key], r.environment.Missing[n.key.backend] = err.Error(), err.Error()
				r.Progress.Note(err.Error()) // it names the backend
			case err != nil:
				errs = append(errs, err)
			default:
				r.clusters[n.key] = c
			}
		})
	}
	wg.Wait()
	for _, n := range r.needs {
		if c := r.clusters[n.key]; c != nil {
			r.environment.Clusters = append(r.environment.Clusters, r.describe(c))
		}
		if e := r.externals[n.key]; e != nil {
			r.environment.Clusters = append(r.environment.Clusters, e.Info())
		}
	}
	errs = append(errs, r.writeEnvironment())
	return errors.Join(errs...)
}

func (r *runner) writeEnvironment() error {
	return writeJSON(filepath.Join(r.dir.path, scenario.FileEnvironment), r.environment)
}

// startCluster starts one cluster; its logs go to a folder of that name.
func (r *runner) startCluster(ctx context.Context, n need, name string) (*cluster.Cluster, error) {
	spec := n.spec()
	spec.Binary = r.Binaries[n.key.backend]
	if spec.Containers != nil {
		*spec.Containers = cluster.Containers{Image: r.Images[n.key.backend], Helper: r.Helper}
	}
	spec.LogDir = filepath.Join(r.dir.path, scenario.DirServers, name)
	c, err := cluster.Start(ctx, r.sup, spec)
	if errors.Is(err, cluster.ErrMissing) {
		return nil, err // it is complete
	}
	if err != nil {
		return nil, fmt.Errorf("start %s (%s): %w", n.key.backend, n.key.topology, err)
	}
	info := c.Info()
	r.Progress.Note(fmt.Sprintf("%s %s ready after %d ms (%s)", info.Product, info.Version, info.ReadyMS, info.Topology))
	return c, nil
}

// describe returns a cluster's description for the run's folder.
func (r *runner) describe(c *cluster.Cluster) scenario.ClusterInfo {
	info := c.Info()
	for i, node := range info.Nodes {
		if rel, err := filepath.Rel(r.dir.path, node.Log); err == nil {
			info.Nodes[i].Log = rel
		}
	}
	return info
}

// cluster finds the servers of the i-th scenario.
func (r *runner) cluster(i int) *cluster.Cluster {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clusters[r.keys[i]]
}

// stopPatience limits how long servers that are no longer needed may take to end.
const stopPatience = 15 * time.Second

// used records that the i-th scenario is over. Servers that no other scenario
// waits for are stopped; the end of the run waits until they have ended.
func (r *runner) used(i int) {
	key := r.keys[i]
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uses[key]--
	if c := r.clusters[key]; c != nil && r.uses[key] == 0 {
		r.stopping.Go(func() { r.stopCluster(c) })
	}
}

func (r *runner) stopCluster(c *cluster.Cluster) {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	if err := c.Stop(ctx); err != nil {
		r.Progress.Note(fmt.Sprintf("stop servers that are no longer needed: %v", err))
	}
}

// renew starts new servers for the scenarios to come, because those of the i-th
// scenario are no longer healthy. If they do not start, these scenarios are
// reported as missing.
func (r *runner) renew(ctx context.Context, i int, why error) {
	key := r.keys[i]
	r.mu.Lock()
	old, left := r.clusters[key], r.uses[key]
	r.anew++
	suffix := fmt.Sprintf("-anew-%d", r.anew)
	r.mu.Unlock()
	if old == nil || left <= 1 || ctx.Err() != nil {
		return // no scenario will need them
	}
	r.Progress.Note(fmt.Sprintf("the servers of %s %s do not recover and are started anew: %v", key.backend, key.topology, why))
	r.stopCluster(old)
	var fresh *cluster.Cluster
	for _, n := range r.needs {
		if n.key == key {
			c, err := r.startCluster(ctx, n, n.name()+suffix)
			if err != nil {
				r.Progress.Note(err.Error())
			}
			fresh = c
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clusters[key] = fresh
	if fresh == nil {
		return
	}
	r.environment.Clusters = append(r.environment.Clusters, r.describe(fresh))
	if err := r.writeEnvironment(); err != nil {
		r.Progress.Note(err.Error())
	}
}
