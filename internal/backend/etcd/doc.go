// Package etcd describes etcd servers: one, or a quorum of three or five.
//
// Settings are the server's flags. Counters are messages received by method
// ("Txn", "LeaseKeepAlive", "Watch"): one per unary call, one per message on a
// stream.
package etcd
