// Package run makes scenarios real: it starts the clusters, prepares the keys,
// starts the worker processes, injects the faults, and writes the run's
// folder; or, where a scenario has no load, it has the conformance suite
// measure the recipe's properties. It writes its findings to files; package
// measure turns them into results.
//
// Scenarios share servers where they can. Those with faults have some of their
// own where a fault needs them prepared for it, so that figures of speed are
// taken on servers as they are in production. After each scenario the servers
// must be healthy again, or they are started anew; a last client then looks for
// locks that no client holds and no client can get.
//
// Package chaos declares interfaces for the clients, servers and the network
// that it needs; this package implements them.
//
// All processes of a run end with it: servers and workers are children of a
// supervise.Run, and the next run removes what a killed run left.
//
// It stands below cmd/lockbench only, and may import every package beneath
// it.
package run
