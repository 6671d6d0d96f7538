// Package run makes scenarios real: it starts the clusters, prepares the keys,
// starts the worker processes, lets the faults loose, and writes the run's
// folder; or, where a scenario has no load, it has the conformance suite
// measure the recipe's properties. What it finds out it leaves in files;
// measure turns them into results.
//
// Scenarios share servers where they can. Those with faults have some of their
// own where a fault needs them prepared for it, so that figures of speed are
// taken on servers as they are in production. After each scenario the servers
// must be healthy again, or they are started anew; a last client then looks for
// locks that nobody holds and nobody can get.
//
// What chaos needs of clients, servers and wires are interfaces of its own; here
// they are filled in.
//
// Whatever happens, what it started ends with it: servers and workers are
// children of a supervise.Run, and a run that was killed is swept up by the
// next one.
//
// It stands below cmd/lockbench only, and may import every package beneath
// it.
package run
