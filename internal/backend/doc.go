// Package backend describes the servers of lock services. A backend defines how to
// find the server's program, how to start it in each topology, when it is ready,
// what it reports about itself, and how to inject a fault.
// There is one package per backend below this one, and the catalogue all.
//
// Package cluster starts, restarts and supervises the servers. It passes a Cluster
// (all servers) and a Node (one of them) to every method of a backend. Backends
// have no state of their own.
//
// Every backend implements Backend. Abilities of some backends (lead, move the
// lead, close clients, evict, fill up, promote) are in small interfaces, found by
// type assertion; see optional.go. Facts that need no server are values in
// Description and Topology.
//
// It may import supervise and impls (for limits and accounts).
package backend
