package cluster

import "github.com/lockbench/lockbench/internal/scenario"

// Guarantees is what the servers of a backend guarantee for the locks that they
// granted, in a topology and with settings that differ from the production
// defaults.
func Guarantees(backend, topology string, settings map[string]string) scenario.ServerFacts {
	consensus := backend == "etcd" || backend == "zookeeper"
	masters := backend == "redis" && topology == "quorum"
	return scenario.ServerFacts{
		Consensus:          consensus,
		Durable:            durable(backend, settings),
		MonotonicClock:     consensus || backend == "memcached",
		Failover:           topology == "replicated",
		Leaderless:         topology == "sharded" || topology == galera || masters,
		KeysPerServer:      topology == "sharded",
		Quorum:             topology == "quorum" || topology == galera,
		ToleratesRejection: masters,
		SendsClientsAway:   backend == "zookeeper",
	}
}

// durable reports whether a server that is killed has what it granted when it is
// started again.
func durable(backend string, settings map[string]string) bool {
	switch backend {
	case "etcd", "zookeeper", "mysql":
		return true
	case "redis":
		return settings["appendonly"] == "yes" && settings["appendfsync"] == "always"
	}
	return false
}
