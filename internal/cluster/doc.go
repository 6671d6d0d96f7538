// Package cluster starts real lock servers as child processes, by topology,
// and reports their addresses, the settings read back from them, their counters
// of requests and their CPU time.
//
// Every server gets a temporary folder, loopback ports of its own and its own
// production defaults. lockbench sets ports, folders, limits on connections and
// the caller's settings; all of these are in Info. A server that lockbench did
// not start is never used: each answers the ready check with a value that only
// our servers have.
//
// What the servers of a backend are is described in package backend and the
// packages below it. Diagnose reports what this machine can run.
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
//     replaces it (Promote, Fence), by itself if Spec.Keeper asks for that. It is
//     for MariaDB only.
//   - galera, mysql: three MariaDB servers that are all written to, with Galera's
//     provider, which Debian has as a package of its own. There is no leader. A
//     server that loses the majority takes no statements. One that was killed gets
//     the missed writes from another, if they are still in memory there; if not,
//     the cluster is started anew, as we never copy all data.
//   - sharded: memcached, three independent servers.
//
// But for galera none needs more than its backend's server. Timings are
// production defaults but for those that would make every failover last too
// long: the sentinels' down-after-milliseconds (1000) and failover-timeout
// (3000), the replicas' repl-diskless-sync-delay (0), MariaDB's net
// timeout of replicas (4 s), time between tries to connect (1 s) and timeout of
// semi-synchronous commits (3000 ms), and those by which silent members of a
// Galera cluster are left behind (suspected after 2 s and not 5, by all after 5 s
// and not 15). They are read back into Info.Settings.
//
// # Faults of nodes
//
// Kill, Restart, Pause and Resume work on any node; Failover, Promote and Fence
// where servers have it. Leader asks the servers which of them leads now. After
// any of them Healthy reports whether the cluster is as at the start: every server
// serves, and has its role.
//
// Other faults use the server's own commands (CloseClients, Evict, Fill, Flush), a
// small library that it is started with (SetClock, SlowDisk; see Spec.Clock) or
// strace (SlowDisk). Supports, Missing and Can return why a fault is not possible.
//
// # Links between servers
//
// With Spec.Links servers use a different loopback address for one another than
// clients use for them, on the same ports. lockbench listens there, looks up in
// the kernel which server has connected, and forwards the connection through the
// proxy of that pair: so CutLinks can cut any side off from the rest, in either
// direction, while all clients reach all servers. The proxies do not read the
// protocols, with two exceptions where servers send addresses: ZooKeeper's
// elections, and the answers of sentinels to clients. Each message between servers
// has one hop more.
//
// # The keeper
//
// With Spec.Keeper a controller asks the primary of a replicated mysql every
// 200 ms, on a new connection and for 500 ms at most. After three failures in a
// row it promotes the replica, fenced or not, for it cannot know. A primary that
// is there again, or was cut off, is made a replica: its clients' connections
// end, and writes that no other server has are lost, because a copy of the new
// primary's data replaces its own. Decisions lists its actions.
//
// It may import supervise, faultnet, scenario (for the types of the record) and
// impls (for accounts and limits), and client libraries.
package cluster
