// Package cluster starts real lock servers as child processes, by topology,
// and tells what they say of themselves: addresses, settings read back,
// counters of requests, CPU time.
//
// Every server gets a temporary folder, loopback ports of its own and its own
// production defaults. What we set is ports, folders, limits on connections and
// whatever the caller's settings say; all of it stands in Info. A server that
// lockbench did not start is never used: each answers the ready check with
// something that only ours can know.
//
// There is one file per backend; a driver is what such a file provides.
// Diagnose tells what this machine can run.
//
// It may import supervise, scenario (for the types of the record) and impls
// (for accounts and limits), and client libraries.
package cluster
