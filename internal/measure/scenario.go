package measure

import (
	"fmt"
	"path/filepath"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// Options adjust what Scenario derives.
type Options struct {
	// CPUs of the machine the run ran on; 0: as environment.json says, else
	// this machine's.
	CPUs int
	// Cluster is what ran, for the result's server, version and settings; nil:
	// as environment.json of the run's folder says.
	Cluster *scenario.ClusterInfo
	// SkipLatencyFile leaves latency.hlog as it is.
	SkipLatencyFile bool
}

// Scenario derives the result of the scenario whose files are in dir, and
// returns it with the history it was derived from. Unless told otherwise it
// writes latency.hlog there. Without one readable record the error is
// history.ErrNoRecords. A scenario that measures properties has no history: the
// one returned with it is empty.
//
// The result's status is done, or interrupted if the run died before it wrote
// its samples.
func Scenario(dir string, info impls.Info, opt Options) (scenario.Result, *history.History, error) {
	in, err := read(dir, info, opt)
	if err != nil {
		return scenario.Result{}, nil, fmt.Errorf("measure %s: %w", filepath.Base(dir), err)
	}
	if in.scenario.Workload.Kind == scenario.Properties {
		r, err := properties(dir, in)
		if err != nil {
			return r, nil, fmt.Errorf("measure %s: %w", in.scenario.Name, err)
		}
		return r, in.history, nil
	}
	r, series := derive(in)
	if !opt.SkipLatencyFile {
		if err := writeLatencies(filepath.Join(dir, scenario.FileLatency), series); err != nil {
			return r, in.history, fmt.Errorf("measure %s: %w", in.scenario.Name, err)
		}
	}
	return r, in.history, nil
}

// derive is a function of the input alone, so that it can be repeated.
func derive(in *input) (scenario.Result, *allSeries) {
	d := &derivation{input: in, holds: checker.Holds(in.history)}
	d.dead = d.deaths()
	d.describe()
	d.findFaults()
	series := d.series()
	d.latencies(series)
	d.rates()
	d.costs()
	d.woken()
	d.inversions()
	d.takeover()
	d.judge()
	d.warn()
	d.compare()
	return d.result, series
}

// derivation is the work on one result.
type derivation struct {
	*input
	holds  []checker.Hold
	result scenario.Result
	faults []fault
	missed []string         // why faults hit nothing
	dead   map[uint32]int64 // clients that faults killed, and when
	last   map[uint32]int64 // see lastStamp
}

// unmeasured notes why a field is null.
func (d *derivation) unmeasured(field, format string, args ...any) {
	d.result.Unmeasured[field] = fmt.Sprintf(format, args...)
}

func (d *derivation) warning(format string, args ...any) {
	d.result.Warnings = append(d.result.Warnings, fmt.Sprintf(format, args...))
}

// describe copies what was known before the run.
func (d *derivation) describe() {
	s, r := d.scenario, &d.result
	*r = scenario.Result{
		Name: s.Name, Group: s.Group, Repeat: s.Repeat, Recipe: s.Recipe, Backend: d.info.Backend,
		Topology: s.Topology, Environment: s.Environment, Status: scenario.StatusDone,
		Workload: s.Workload, Seed: s.Seed, TTL: s.TTL, TTLApplies: d.info.Bound.Leased(), Bound: string(d.info.Bound),
		WaitPolicy: "woken by the server", Faults: []scenario.FaultResult{}, Workers: s.Workers, Clients: s.Clients,
		DurationNS: d.samples.End - d.samples.Start, PerSecond: []int64{},
		Expect: s.Expect, Unmeasured: map[string]string{}, Warnings: []string{},
	}
	if own, shared := impls.CodeLines(s.Recipe); own > 0 {
		r.CodeLines = &scenario.CodeLines{Recipe: own, Shared: shared}
	} else {
		d.unmeasured("code_lines", "the recipe is a control, or not one of lockbench's own")
	}
	if d.info.Polls {
		r.WaitPolicy = "poll " + s.Poll.String()
	}
	if d.cluster != nil {
		r.Server, r.Version = d.cluster.Product, d.cluster.Version
		r.Durability, r.Settings = d.cluster.Durability, d.cluster.Settings
	}
	switch {
	case d.died != "":
		r.Status, r.Reason = scenario.StatusInterrupted, d.died
	case d.samples.Trouble != "":
		r.Status, r.Reason = scenario.StatusFailed, d.samples.Trouble
	}
	r.Warnings = append(r.Warnings, d.doubts...)
}

// incomplete tells why the record does not show all of what was planned, or "":
// then nothing in it proves that the lock is safe, though all of it is true.
func (d *derivation) incomplete() string {
	switch {
	case d.died != "":
		return d.died
	case d.samples.Trouble != "":
		return d.samples.Trouble
	}
	for _, w := range d.samples.Workers {
		if w.Error != "" && !d.killed(w) {
			return fmt.Sprintf("the worker with pid %d (clients %v) did not come to its end: %s", w.PID, w.Clients, w.Error)
		}
	}
	return ""
}

// measured reports whether c counts: it returned within the window and was not
// begun in the warm-up.
func (d *derivation) measured(c *history.Call) bool {
	return c.Flags&history.FlagWarmup == 0 && c.Outcome != history.Open && d.within(c.Return)
}

// within reports whether a stamp lies in the window.
func (d *derivation) within(at int64) bool { return at >= d.samples.Start && at < d.samples.End }

func asks(c *history.Call) bool {
	return c.Kind == history.KindAcquire || c.Kind == history.KindTry
}

func ptr[T any](v T) *T { return &v }
