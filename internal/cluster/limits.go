package cluster

import (
	"strconv"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// LimitsFor tells which TTLs servers of a backend will serve once they run
// with these settings; what is not set has its production default. Limits of a
// running cluster are read back from it.
func LimitsFor(backend string, settings map[string]string) impls.Limits {
	l := impls.DefaultLimits()
	switch backend {
	case "zookeeper":
		if ms, err := strconv.Atoi(settings["tickTime"]); err == nil && ms > 0 {
			l.TickTime = time.Duration(ms) * time.Millisecond
		}
	case "etcd":
		l.ElectionTimeout = etcdElection(settings["election-timeout"], l.ElectionTimeout)
	}
	return l
}
