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
// # Topologies
//
//   - single: one server, of every backend.
//   - quorum: etcd and zookeeper, three members or five with one leader; redis,
//     five independent masters or three.
//   - replicated, redis: a master, two replicas, and three sentinels that make
//     one of them the master when it is silent for a second. The sentinels are
//     the same program and no nodes: they are not counted, killed or paused;
//     Directory has their addresses. Replication is asynchronous.
//   - replicated, mysql: a primary and a replica by GTID, asynchronous, or
//     semi-synchronous by the setting "semi-sync" (on, off). Both start closed
//     to clients' writes; lockbench opens one, and is the controller that
//     replaces it (Promote, Fence). MariaDB's way is tried; MySQL 8's is
//     written after its manual.
//   - sharded: memcached, three servers that know nothing of one another.
//
// None needs more than its backend's server. Timings are production defaults
// but for those that would make every failover last minutes: the sentinels'
// down-after-milliseconds (1000) and failover-timeout (3000), the replicas'
// repl-diskless-sync-delay (0), and MariaDB's and MySQL's net timeout of
// replicas (4 s), time between tries to connect (1 s) and timeout of
// semi-synchronous commits (3000 ms). They are read back into Info.Settings.
//
// # Faults of nodes
//
// Kill, Restart, Pause and Resume work on any node; Failover, Promote and Fence
// where servers have it. Leader asks the servers who leads now. After any of
// them Healthy tells whether all is as it was at the start: every server serves,
// and has its part.
//
// What else can be done to a server is done by commands of its own
// (CloseClients, Evict, Flush), by a small library that it is started with
// (SetClock, SlowDisk; see Spec.Clock) or by strace (SlowDisk). Supports, Missing
// and Can tell what cannot be done, and why.
//
// It may import supervise, scenario (for the types of the record) and impls
// (for accounts and limits), and client libraries.
package cluster
