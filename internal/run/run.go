package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/container"
	"github.com/lockbench/lockbench/internal/external"
	"github.com/lockbench/lockbench/internal/netdrop"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
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
	Images    map[string]string // the same of images of containers
	Helper    []string          // see cluster.Containers
	External  *external.Config  // the servers of scenarios in the environment external; nil: there are none
	// AllowDestructive permits faults on external servers whose identities External
	// has, if they meet the other conditions (see cluster.External).
	AllowDestructive bool
	Find             func(id string) (impls.Recipe, bool)
	Worker           []string // the command that starts a worker process
	Watchdog         []string // the command that starts the run's watchdog, see supervise.Run.Watch; nil: it has none
	Progress         Progress // nil: Silent
	Temp             string   // where servers keep their data; "": the system's choice
	// Parallel is how many scenarios may run side by side, each on servers of its
	// own; 0 and 1: none beside another. Figures of speed mean little then.
	Parallel int
	// MaxDisk stops the run before its folder has more bytes; 0: no limit. A run
	// also stops before the disk is full.
	MaxDisk scenario.Size
	// Known are failures that do not count.
	Known scenario.KnownFailures
	// NotTried is what a budget left out, for the record.
	NotTried []scenario.NotTried

	// Calls receives every call of the clients about a second after it ended, of
	// each scenario from one goroutine; nil: the files are not read meanwhile.
	Calls func(sc scenario.Scenario, c *history.Call)
	// InForce receives when a fault begins and ceases to be in force, from several
	// goroutines; nil: not reported (see chaos.Schedule).
	InForce func(sc scenario.Scenario, fault string, inForce bool)

	// enough ends the load of a scenario once it returns true. Tests set it, so
	// that they wait for what they look for, and not for a time.
	enough func(sc scenario.Scenario, acquired uint64) bool
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
// A backend that is not available here is no error: its scenarios are in the
// result as missing, with the reason. A server that is available but does not
// start is an error (ErrServer).
func Run(ctx context.Context, o Options) (_ Outcome, err error) {
	if o.Progress == nil {
		o.Progress = Silent{}
	}
	started := time.Now()
	if err := checkTemp(o.Temp); err != nil {
		return Outcome{}, err
	}
	// Containers first: they write to the folders of their runs.
	containers, err := container.Sweep(ctx, supervise.Dead)
	if err != nil {
		o.Progress.Note(err.Error())
	}
	if len(containers) > 0 {
		o.Progress.Note("cleaned up after dead runs: removed " + strings.Join(containers, ", "))
	}
	swept, err := supervise.Sweep(o.Temp)
	if errors.Is(err, fs.ErrPermission) {
		err = unusable(ErrTemp, err)
	}
	if err != nil {
		return Outcome{}, err
	}
	for _, s := range swept {
		o.Progress.Note(fmt.Sprintf("cleaned up: %v", s))
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
	if err := os.WriteFile(filepath.Join(dir.path, scenario.FileSuite), spec, 0o644); err != nil {
		return Outcome{}, fmt.Errorf("write %s: %w", scenario.FileSuite, err)
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

	if len(o.Watchdog) > 0 {
		if err := sup.Watch(o.Watchdog); err != nil {
			return Outcome{}, err
		}
	}
	r, err := newRunner(o, dir, sup)
	if err != nil {
		return Outcome{Dir: dir.path}, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	doc := scenario.Document{
		Schema: scenario.SchemaVersion, Lockbench: o.Version, Suite: o.Suite, Seed: o.Seed,
		Started: started.UTC(), Host: describeHost(), Warnings: []string{}, NotTried: o.NotTried,
	}
	r.environment = scenario.Environment{Host: doc.Host, Lockbench: o.Version, Drivers: driverVersions(), Missing: map[string]string{}, Started: doc.Started}
	if r.dropper != nil {
		r.environment.Network = netdrop.Settings()
	}
	if err := r.startClusters(ctx); err != nil && ctx.Err() == nil {
		// A server that failed left its log; a wrong argument left nothing.
		r.leaveAll(ctx)
		dir.discard = errors.Is(err, cluster.ErrExternal) || !errors.Is(err, ErrServer) && (errors.Is(err, cluster.ErrBinary) || errors.Is(err, cluster.ErrSpec))
		return Outcome{Dir: dir.path}, err
	}
	whole, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go watchDisk(whole, dir.path, o.MaxDisk, stop)
	doc.Scenarios = r.all(whole)
	r.stopping.Wait()
	doc.Interrupted = ctx.Err() != nil
	doc.Warnings = append(doc.Warnings, r.leaveAll(ctx)...)
	if why := context.Cause(whole); errors.Is(why, ErrDisk) {
		doc.Warnings = append(doc.Warnings, why.Error())
	}
	doc.Warnings = append(doc.Warnings, o.Known.Gone(doc.Scenarios)...)
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
	dir     *folder
	sup     *supervise.Run
	clock   history.Clock
	keys    []clusterKey // by scenario: which servers it needs
	needs   []need
	dropper *netdrop.Dropper // nil: the run has no network of its own

	environment scenario.Environment
	stopping    sync.WaitGroup // clusters that are no longer needed

	mu        sync.Mutex // guards what follows, once scenarios run
	clusters  map[clusterKey]*cluster.Cluster
	externals map[clusterKey]*cluster.External
	names     map[clusterKey][]string // of locks on external servers
	uses      map[clusterKey]int      // scenarios to come
	anew      int                     // clusters that were started again
	missing   map[clusterKey]string   // why it cannot be had; fixed when the clusters have started
}

func newRunner(o Options, dir *folder, sup *supervise.Run) (_ *runner, err error) {
	r := &runner{
		Options: o, dir: dir, sup: sup, clock: history.NewClock(),
		clusters: map[clusterKey]*cluster.Cluster{}, externals: map[clusterKey]*cluster.External{}, names: map[clusterKey][]string{}, uses: map[clusterKey]int{}, missing: map[clusterKey]string{},
	}
	if r.needs, r.keys, err = needs(o.Scenarios, o.Find); err != nil {
		return nil, err
	}
	for _, n := range r.needs {
		r.uses[n.key] = n.uses
	}
	if netdrop.Inside() {
		if r.dropper, err = netdrop.Open(); err != nil {
			return nil, fmt.Errorf("prepare the kernel to drop packets: %w", err)
		}
	}
	return r, nil
}

func (r *runner) close() error {
	if r.dropper == nil {
		return nil
	}
	return r.dropper.Close()
}
