package measure

import (
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/scenario"
)

// Options adjust what Scenario derives.
type Options struct {
	// CPUs of the machine the run ran on; 0 means this machine's.
	CPUs int
	// Cluster is what ran, for the result's server, version and settings.
	Cluster *scenario.ClusterInfo
	// SkipLatencyFile leaves latency.hlog as it is.
	SkipLatencyFile bool
}

// Scenario derives the result of the scenario whose files are in dir, and
// returns it with the history it was derived from. It writes latency.hlog
// there. Without one readable record the error is history.ErrNoRecords.
func Scenario(dir string, info impls.Info, opt Options) (scenario.Result, *history.History, error) {
	return scenario.Result{}, nil, nil
}
