// Package run makes scenarios real: it starts the clusters, prepares the keys,
// starts the worker processes, lets the faults loose, and writes the run's
// folder; or, where a scenario has no load, it has the conformance suite
// measure the recipe's properties. What it finds out it leaves in files;
// measure turns them into results.
//
// Whatever happens, what it started ends with it: servers and workers are
// children of a supervise.Run, and a run that was killed is swept up by the
// next one.
//
// It stands below cmd/lockbench only, and may import every package beneath
// it.
package run
