package measure

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// input is the content of a scenario's folder.
type input struct {
	scenario scenario.Scenario
	info     impls.Info
	history  *history.History // its calls are those around faults
	calls    *history.Keyed   // all of them
	samples  scenario.Samples
	sampled  bool // samples.json was there
	events   []scenario.FaultEvent
	cluster  *scenario.ClusterInfo
	cpus     int
	died     string   // why the record is not whole, if the run did not come to its end
	doubts   []string // warnings that reading gave rise to
}

func read(dir string, info impls.Info, opt Options) (in *input, err error) {
	in = &input{info: info, cluster: opt.Cluster}
	if err := scenario.ReadJSON(filepath.Join(dir, scenario.FileScenario), &in.scenario); err != nil {
		return nil, err
	}
	if in.scenario.Recipe != info.ID {
		return nil, fmt.Errorf("its recipe is %s, not %s", in.scenario.Recipe, info.ID)
	}
	environment := filepath.Join(dir, "..", "..", scenario.FileEnvironment)
	if in.scenario.Workload.Kind == scenario.Properties {
		return in, in.readEnvironment(environment)
	}
	merged := filepath.Join(dir, scenario.FileHistory)
	if _, err := os.Stat(merged); errors.Is(err, os.ErrNotExist) {
		// The run died before it merged them.
		merged = filepath.Join(dir, scenario.DirClients)
		in.died = "the run ended before its histories were merged"
	}
	k, err := history.ReadKeyed(merged, "")
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.close())
		}
	}()
	in.keyed(k)

	err = scenario.ReadJSON(filepath.Join(dir, scenario.FileSamples), &in.samples)
	switch {
	case err == nil:
		in.sampled = true
	case errors.Is(err, os.ErrNotExist):
		in.died, err = "the run ended before it wrote its samples", nil
	default:
		return nil, err
	}
	if in.samples.End < in.samples.Start {
		return nil, fmt.Errorf("%s: the window ends before it starts", scenario.FileSamples)
	}
	events, damage, err := scenario.ReadFaults(dir)
	if err != nil {
		return nil, err
	}
	in.events = events
	if damage != "" {
		in.doubts = append(in.doubts, damage)
	}
	return in, in.readEnvironment(environment)
}

// keyed takes over a history.
func (in *input) keyed(k *history.Keyed) {
	in.calls = k
	h := k.History
	in.history = &h
}

// close removes what reading the history took on disk.
func (in *input) close() error {
	if in.calls == nil {
		return nil
	}
	return in.calls.Close()
}

// guessWindow takes the window from the calls that the load made within it.
func (in *input) guessWindow(from, to int64) {
	in.samples.Start, in.samples.End = from, to
	for _, s := range in.history.Streams {
		in.samples.ClockUncertaintyNS = max(in.samples.ClockUncertaintyNS, s.ClockUncertainty)
	}
	in.doubts = append(in.doubts, "the measured window is taken from the history, for the run died before it noted it")
}

// readEnvironment fills in what the caller did not give.
func (in *input) readEnvironment(path string) error {
	var env scenario.Environment
	if err := scenario.ReadJSON(path, &env); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	in.cpus = cmp.Or(env.Host.CPUs, runtime.NumCPU())
	for i := range env.Clusters {
		c := &env.Clusters[i]
		if in.cluster == nil && c.Backend == in.info.Backend && c.Topology == in.scenario.Topology {
			in.cluster = c
		}
	}
	return nil
}
