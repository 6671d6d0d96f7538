package cluster

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

// ErrMachine: this machine cannot do it; the message says what it lacks.
var ErrMachine = errors.New("not on this machine")

// Can says why these servers cannot suffer a fault's action (see
// scenario.FaultKind), or nil. The error is ErrUnsupported or ErrMachine, and
// tells the reason.
func (c *Cluster) Can(action string) error {
	if err := c.spec.Suffers(action); err != nil {
		return err
	}
	switch action {
	case scenario.ActCut, scenario.ActCutPeers:
		if !c.spec.Links && hasLinks(c.driver, c.spec.Topology) {
			return fmt.Errorf("%w: their links do not run through proxies; start them with Spec.Links", ErrUnsupported)
		}
	case scenario.ActClock:
		for _, n := range c.Nodes() {
			if err := c.shimmed(n); n.alive() && err != nil {
				return err
			}
		}
	case scenario.ActSlowDisk:
		for _, n := range c.Nodes() {
			if n.alive() && c.shimmed(n) != nil {
				return missingTracer()
			}
		}
	}
	return nil
}

// Missing says what this machine lacks for an action on servers, or nil. The
// error is ErrMachine, and says how to get it.
func Missing(action string) error {
	switch action {
	case scenario.ActClock:
		return missingShim()
	case scenario.ActSlowDisk:
		return missingTracer()
	case scenario.ActCutPeers:
		if runtime.GOOS != "linux" {
			return fmt.Errorf("%w: the links between servers can be cut on Linux only", ErrMachine)
		}
	}
	return nil
}

// Suffers says why servers of this specification, with its settings, cannot
// suffer an action, or nil, without starting any. Links and Clock may be set
// yet.
func (s Spec) Suffers(action string) error {
	topology := s.Topology
	if topology == "" {
		topology = "single"
	}
	if err := Supports(s.Backend, topology, action); err != nil {
		return err
	}
	off := func(name string) bool {
		return slices.Contains([]string{"no", "false", "0", "off"}, strings.ToLower(s.Settings[name]))
	}
	_, unsafeFlag := s.Settings["unsafe-no-fsync"]
	_, refuses := s.Settings["M"]
	if _, long := s.Settings["disable-evictions"]; long {
		refuses = true
	}
	reason := ""
	switch action + " " + s.Backend {
	case scenario.ActSlowDisk + " redis":
		if s.Settings["appendonly"] != "yes" {
			reason = `no request waits for a disk with appendonly=no; set servers: {redis: {appendonly: "yes", appendfsync: always}}`
		} else if s.Settings["appendfsync"] == "no" {
			reason = "it never flushes to disk with appendfsync=no; set it to always or everysec"
		}
	case scenario.ActSlowDisk + " etcd":
		if unsafeFlag && !off("unsafe-no-fsync") {
			reason = "it never flushes to disk with --unsafe-no-fsync; leave that out"
		}
	case scenario.ActSlowDisk + " zookeeper":
		if off("forceSync") {
			reason = "it never flushes to disk with forceSync=no; leave that out"
		}
	case scenario.ActSlowDisk + " mysql":
		for _, name := range []string{"innodb-flush-log-at-trx-commit", "innodb_flush_log_at_trx_commit"} {
			if v := s.Settings[name]; v == "0" || v == "2" {
				reason = "no commit waits for a disk with " + name + "=" + v + "; set it to 1"
			}
		}
	case scenario.ActEvict + " redis":
		if s.Settings["maxmemory-policy"] == "noeviction" {
			reason = "with maxmemory-policy=noeviction a full server refuses new locks and forgets none; set another policy or none"
		}
	case scenario.ActEvict + " memcached":
		if refuses {
			reason = "with the flag M a full server refuses new locks and forgets none; leave that out"
		}
	case scenario.ActFull + " memcached":
		if !refuses {
			reason = `a full server evicts what it has and refuses nothing, unless it has the flag M; set servers: {memcached: {M: ""}}, or use evict`
		}
	}
	if reason != "" {
		return fmt.Errorf("%w: %s", ErrUnsupported, reason)
	}
	return nil
}

// Supports says why no servers of a backend and topology can suffer an action,
// whatever their settings, or nil. It needs no servers. The error is
// ErrUnsupported with the reason, or ErrSpec if there is no such backend,
// topology or action.
func Supports(backend, topology, action string) error {
	d, err := driverOf(backend)
	if err != nil {
		return err
	}
	if !slices.Contains(Topologies(backend), topology) {
		return fmt.Errorf("%w: %s has no topology %q: choose from %v", ErrSpec, backend, topology, Topologies(backend))
	}
	if _, known := scenario.ParseFaultKind(scenario.TargetLeader + "-" + action); !known {
		return fmt.Errorf("%w: no server can be hurt by %q", ErrSpec, action)
	}
	reason := reasonAgainst(backend, action)
	switch {
	case action == scenario.ActCutPeers && !hasLinks(d, topology):
		reason = fmt.Sprintf("the servers of %s (%s) know nothing of one another; use %s", backend, topology, scenario.ActCutClients)
	case action == scenario.ActMove && (topology == galera || reason == "" && !hasLinks(d, topology)):
		reason = fmt.Sprintf("nobody leads among the servers of %s (%s)", backend, topology)
	}
	if reason != "" {
		return fmt.Errorf("%w: %s", ErrUnsupported, reason)
	}
	return nil
}

// reasonAgainst is why servers of a backend cannot suffer an action in any
// topology; "" if they can in some.
func reasonAgainst(backend, action string) string {
	return map[string]string{
		scenario.ActClock + " etcd": "etcd keeps leases by a monotonic clock, and Go ignores preloaded clocks",

		scenario.ActSlowDisk + " memcached": "memcached writes nothing to disk",

		scenario.ActClose + " etcd":      "etcd has no command that closes its clients' connections; use reset",
		scenario.ActClose + " zookeeper": "ZooKeeper has no command that closes its clients' connections; use reset",
		scenario.ActClose + " memcached": "memcached has no command that closes its clients' connections; use reset",

		scenario.ActEvict + " etcd":      "etcd never evicts: when its space is used up it refuses writes; use full",
		scenario.ActEvict + " zookeeper": "ZooKeeper never evicts: what does not fit its memory ends it",
		scenario.ActEvict + " mysql":     "a database never evicts rows",

		scenario.ActFull + " zookeeper": "ZooKeeper has no limit at which it refuses: what does not fit its memory ends it",
		scenario.ActFull + " mysql":     "a database refuses when its disk is full, and the disk is this machine's",

		scenario.ActFlush + " etcd":      "etcd has no command that forgets everything",
		scenario.ActFlush + " zookeeper": "ZooKeeper has no command that forgets everything",
		scenario.ActFlush + " mysql":     "a database has no command that forgets everything",

		scenario.ActMove + " zookeeper": "ZooKeeper hands over the lead only when its leader ends; use pause, kill or cut",
		scenario.ActMove + " mysql":     "a primary hands over nothing by itself; use pause, kill or cut",
	}[action+" "+backend]
}

// hasLinks tells whether the servers of a topology talk to one another.
func hasLinks(d driver, topology string) bool {
	l, ok := d.(linked)
	return ok && len(l.links(topology)) > 0
}
