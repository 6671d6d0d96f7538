// Package zookeeper describes Apache ZooKeeper servers: one, or a quorum of three
// or five.
//
// Settings are the keys of zoo.cfg, and "jvmFlags". The only counter is
// "packets_received", the pings of the clients' sessions included.
package zookeeper
