package run

import (
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Progress receives the progress of a run. Its methods are called from several
// goroutines and must be quick.
type Progress interface {
	// Note is one line of news: a cluster is up, a dead run was swept.
	Note(line string)
	// Begin announces the i-th of n scenarios.
	Begin(i, n int, sc scenario.Scenario)
	// Tick comes several times a second while clients work.
	Tick(sc scenario.Scenario, at Status)
	// Violation reports a key that two clients hold, while they do: the first few
	// of a scenario. Done reports everything else.
	Violation(sc scenario.Scenario, what string)
	// Done reports a scenario's result.
	Done(r scenario.Result)
}

// Status is how far a scenario is.
type Status struct {
	Elapsed, Total time.Duration // of its load
	Acquired       uint64        // grants so far, warm-up included
	DoubleHolds    int           // seen so far; the check at the end finds all
}

// Silent is a Progress that does nothing.
type Silent struct{}

func (Silent) Note(string)                         {}
func (Silent) Begin(int, int, scenario.Scenario)   {}
func (Silent) Tick(scenario.Scenario, Status)      {}
func (Silent) Violation(scenario.Scenario, string) {}
func (Silent) Done(scenario.Result)                {}
