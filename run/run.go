package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/lockbench/lockbench/cluster"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/scenario"
	"github.com/lockbench/lockbench/supervise"
)

// Options are what a run needs to know. Suite, Scenarios, Out, Find and
// Worker are required.
type Options struct {
	Suite     string
	Seed      uint64
	Scenarios []scenario.Scenario
	Out       string            // folder in which the run's own folder is made
	Version   string            // of lockbench, for the record
	Binaries  map[string]string // server binaries the user named, by backend
	Find      func(id string) (impls.Recipe, bool)
	Worker    []string // the command that starts a worker process
	Progress  Progress // nil: Silent
	Temp      string   // where servers keep their data; "": the system's choice
}

// Outcome is what Run leaves.
type Outcome struct {
	Dir      string // the run's folder
	Document scenario.Document
}

// ErrServer: a server did not start; the message holds its last log lines.
var ErrServer = cluster.ErrServer

// Run carries out the scenarios, one after another, and writes the run's
// folder with result.json. When ctx ends it stops the load, heals, measures
// what there is and returns the Outcome as interrupted, without an error.
//
// A backend that cannot be had here is no error: its scenarios stand in the
// result as missing, with the reason. A server that is there and does not
// start is an error (ErrServer).
func Run(ctx context.Context, o Options) (_ Outcome, err error) {
	if o.Progress == nil {
		o.Progress = Silent{}
	}
	started := time.Now()
	if err := checkTemp(o.Temp); err != nil {
		return Outcome{}, err
	}
	swept, err := supervise.Sweep(o.Temp)
	if errors.Is(err, fs.ErrPermission) {
		err = unusable(ErrTemp, err)
	}
	if err != nil {
		return Outcome{}, err
	}
	for _, s := range swept {
		o.Progress.Note(fmt.Sprintf("swept up after a dead run: %v", s))
	}
	dir, err := newFolder(o.Out, o.Suite, started)
	if err != nil {
		return Outcome{}, err
	}
	defer func() { err = errors.Join(err, dir.close()) }()
	spec, err := scenario.MarshalSuite(o.Suite, o.Seed, o.Scenarios)
	if err != nil {
		return Outcome{}, err
	}
	if err := writeFile(filepath.Join(dir.path, scenario.FileSuite), spec); err != nil {
		return Outcome{}, err
	}
	sup, err := supervise.Begin(o.Temp)
	if err != nil {
		return Outcome{}, err
	}
	defer func() {
		// Whatever ended the run, its processes end now, however long ctx lived.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		err = errors.Join(err, sup.End(end))
	}()

	r := &runner{Options: o, dir: dir, sup: sup, clock: history.NewClock(), clusters: map[clusterKey]*cluster.Cluster{}, missing: map[string]string{}}
	doc := scenario.Document{
		Schema: scenario.SchemaVersion, Lockbench: o.Version, Suite: o.Suite, Seed: o.Seed,
		Started: started.UTC(), Host: describeHost(), Warnings: []string{},
	}
	if err := r.startClusters(ctx, doc.Host, started); err != nil && ctx.Err() == nil {
		// A server that failed left its log; a wrong word left nothing.
		dir.discard = !errors.Is(err, ErrServer) && (errors.Is(err, cluster.ErrBinary) || errors.Is(err, cluster.ErrSpec))
		return Outcome{Dir: dir.path}, err
	}
	for i, sc := range o.Scenarios {
		o.Progress.Begin(i+1, len(o.Scenarios), sc)
		res := r.scenario(ctx, i, sc)
		doc.Scenarios = append(doc.Scenarios, res)
		o.Progress.Done(res)
	}
	doc.Interrupted = ctx.Err() != nil
	doc.Finished = time.Now().UTC()
	if doc.DiskBytes, err = diskUse(dir.path); err != nil {
		return Outcome{Dir: dir.path}, fmt.Errorf("measure the run's folder: %w", err)
	}
	if err := writeJSON(filepath.Join(dir.path, scenario.FileResult), doc); err != nil {
		return Outcome{Dir: dir.path}, err
	}
	return Outcome{Dir: dir.path, Document: doc}, nil
}

// runner is one run under way.
type runner struct {
	Options
	dir      *folder
	sup      *supervise.Run
	clock    history.Clock
	clusters map[clusterKey]*cluster.Cluster
	missing  map[string]string // backend: why it cannot be had
}

// startClusters brings all servers up side by side, and writes
// environment.json.
func (r *runner) startClusters(ctx context.Context, host scenario.Host, started time.Time) error {
	list, err := needs(r.Scenarios, r.Find)
	if err != nil {
		return err
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for _, n := range list {
		wg.Go(func() {
			c, err := cluster.Start(ctx, r.sup, cluster.Spec{
				Backend: n.key.backend, Topology: n.key.topology, Settings: n.settings,
				Binary: r.Binaries[n.key.backend], Clients: n.clients,
				LogDir: filepath.Join(r.dir.path, scenario.DirServers, n.name()),
			})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, cluster.ErrMissing):
				r.missing[n.key.backend] = err.Error()
				r.Progress.Note(fmt.Sprintf("%s: %v", n.key.backend, err))
			case err != nil:
				errs = append(errs, fmt.Errorf("start %s (%s): %w", n.key.backend, n.key.topology, err))
			default:
				r.clusters[n.key] = c
				info := c.Info()
				r.Progress.Note(fmt.Sprintf("%s %s ready after %d ms (%s)", info.Product, info.Version, info.ReadyMS, info.Topology))
			}
		})
	}
	wg.Wait()
	env := scenario.Environment{Host: host, Lockbench: r.Version, Drivers: driverVersions(), Missing: r.missing, Started: started.UTC()}
	for _, n := range list {
		if c := r.clusters[n.key]; c != nil {
			info := c.Info()
			for i, node := range info.Nodes {
				if rel, err := filepath.Rel(r.dir.path, node.Log); err == nil {
					info.Nodes[i].Log = rel
				}
			}
			env.Clusters = append(env.Clusters, info)
		}
	}
	errs = append(errs, writeJSON(filepath.Join(r.dir.path, scenario.FileEnvironment), env))
	return errors.Join(errs...)
}
