package measure

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// Options adjust what Scenario derives.
type Options struct {
	// Cluster provides the result's server, version and settings; nil: from
	// environment.json in the run's folder.
	Cluster *scenario.ClusterInfo
	// SkipLatencyFile leaves latency.hlog as it is.
	SkipLatencyFile bool
}

// Scenario derives the result of the scenario whose files are in dir, and writes
// latency.hlog there unless the options skip it. Without one readable record the
// error is history.ErrNoRecords. A scenario that measures properties has no history.
//
// The result's status is done, or interrupted if the run died before it wrote
// its samples.
func Scenario(dir string, info impls.Info, opt Options) (_ scenario.Result, err error) {
	// Nearly all memory is in a few large pieces, so that collecting is cheap, and
	// as much garbage as is usual would not be.
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	in, err := read(dir, info, opt)
	if err != nil {
		return scenario.Result{}, fmt.Errorf("measure %s: %w", filepath.Base(dir), err)
	}
	defer func() { err = errors.Join(err, in.close()) }()
	if in.scenario.Workload.Kind == scenario.Properties {
		r, err := properties(dir, in)
		if err != nil {
			return r, fmt.Errorf("measure %s: %w", in.scenario.Name, err)
		}
		return r, nil
	}
	r, series, err := derive(in)
	if err != nil {
		return r, fmt.Errorf("measure %s: %w", in.scenario.Name, err)
	}
	if !opt.SkipLatencyFile {
		if err := writeLatencies(filepath.Join(dir, scenario.FileLatency), series); err != nil {
			return r, fmt.Errorf("measure %s: %w", in.scenario.Name, err)
		}
	}
	return r, nil
}

// gcPercent is how much garbage, in percent of the memory in use, may be there
// while a history is measured.
const gcPercent = 10

// derive is a function of the input alone, so that it can be repeated.
func derive(in *input) (scenario.Result, *allSeries, error) {
	d := &derivation{input: in}
	d.dead = d.deaths()
	survey, err := d.survey()
	if err != nil {
		return d.result, nil, err
	}
	d.describe()
	if err := d.gather(); err != nil {
		return d.result, nil, err
	}
	if err := d.gatherHolds(survey); err != nil {
		return d.result, nil, err
	}
	d.findFaults()
	d.latencies(d.totals.series)
	d.rates()
	d.costs()
	d.woken()
	if err := d.inversions(); err != nil {
		return d.result, nil, err
	}
	d.takeover()
	if l := d.totals.leased; l.Holds > 0 {
		d.result.Leased = &l
	} else {
		d.unmeasured("leased", "no hold that ended within the window had a lease whose end its client knew")
	}
	if err := d.judge(survey); err != nil {
		return d.result, nil, err
	}
	d.warn()
	d.compare()
	return d.result, d.totals.series, nil
}

// derivation is the work on one result.
type derivation struct {
	*input
	totals    *totals
	windows   []*window      // in which calls and holds are kept
	holds     []checker.Hold // those around faults, by (key, start)
	heldTime  float64        // share of the window in which any key was held
	losses    scenario.LossSignals
	result    scenario.Result
	faults    []fault
	missed    []string         // why faults hit nothing
	dead      map[uint32]int64 // clients that faults killed, and when
	last      map[uint32]int64 // the last stamp that is known of a client
	lastAsked map[uint32]int64 // by key: until when a living client is known to have waited for it
	digits    int              // of the stamps in a witness's sentence
}

// unmeasured notes why a field is null.
func (d *derivation) unmeasured(field, format string, args ...any) {
	d.result.Unmeasured[field] = fmt.Sprintf(format, args...)
}

func (d *derivation) warning(format string, args ...any) {
	d.result.Warnings = append(d.result.Warnings, fmt.Sprintf(format, args...))
}

// describe copies the facts that were known before the run.
func (d *derivation) describe() {
	s, r := d.scenario, &d.result
	*r = scenario.Result{
		Name: s.Name, Group: s.Group, Repeat: s.Repeat, Recipe: s.Recipe, Backend: d.info.Backend,
		Topology: s.Topology, Environment: s.Environment, Status: scenario.StatusDone,
		Workload: s.Workload, Seed: s.Seed, TTL: s.TTL, LockDelay: s.LockDelay, TTLApplies: d.info.Bound.Leased(), Bound: string(d.info.Bound),
		WaitPolicy: "woken by the server", Faults: []scenario.FaultResult{}, Workers: s.Workers, Clients: s.Clients,
		DurationNS: d.samples.End - d.samples.Start, WindowAt: d.samples.WindowAt, PerSecond: []int64{},
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

// incomplete returns why the record does not show all of the planned load, or "".
// An incomplete record cannot prove that the lock is safe, but it can prove a
// violation.
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
