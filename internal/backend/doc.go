// Package backend describes what the servers of a lock service are. A backend
// knows how to find the server's program, how to start it in each topology,
// when it is ready, what it reports about itself, and how a fault is done to it.
// There is one package per backend below this one, and the catalogue all.
//
// A backend places nothing: package cluster starts, restarts and supervises the
// servers. It passes a Cluster (all servers) and a Node (one of them) to every
// method. Backends have no state of their own.
//
// What every backend must provide is in Backend. What some of them can do
// besides (lead, move the lead, close clients, evict, fill up, promote) is in
// small interfaces, found by type assertion; see optional.go. Facts that need no
// server are values in Description and Topology.
//
// It may import supervise and impls (for limits and accounts).
package backend
