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
	// Tick comes several times a second while clients work: how far the
	// scenario is, and how many locks were acquired, warm-up included.
	Tick(sc scenario.Scenario, elapsed, total time.Duration, acquired uint64)
	// Violation reports a key that two clients hold, while they do: the first few
	// of a scenario. Done reports everything else.
	Violation(sc scenario.Scenario, what string)
	// Done reports a scenario's result.
	Done(r scenario.Result)
}

// Silent is a Progress that does nothing.
type Silent struct{}

func (Silent) Note(string)                                                  {}
func (Silent) Begin(int, int, scenario.Scenario)                            {}
func (Silent) Tick(scenario.Scenario, time.Duration, time.Duration, uint64) {}
func (Silent) Violation(scenario.Scenario, string)                          {}
func (Silent) Done(scenario.Result)                                         {}
