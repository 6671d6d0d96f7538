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

// Can says why these servers lack an ability (scenario.AbilityKill...), or nil. The error is ErrUnsupported or ErrMachine, and
// tells the reason.
func (c *Cluster) Can(action string) error {
	if err := c.spec.Suffers(action); err != nil {
		return err
	}
	switch action {
	case scenario.AbilityLinks:
		if !c.spec.Links && hasLinks(c.driver, c.spec.Topology) {
			return fmt.Errorf("%w: their links do not run through proxies; start them with Spec.Links", ErrUnsupported)
		}
	case scenario.AbilityClock:
		for _, n := range c.Nodes() {
			if err := c.shimmed(n); n.alive() && err != nil {
				return err
			}
		}
	case scenario.AbilitySlowDisk:
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
	case scenario.AbilityClock:
		return missingShim()
	case scenario.AbilitySlowDisk:
		return missingTracer()
	case scenario.AbilityLinks:
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
	case scenario.AbilitySlowDisk + " redis":
		if s.Settings["appendonly"] != "yes" {
			reason = `no request waits for a disk with appendonly=no; set servers: {redis: {appendonly: "yes", appendfsync: always}}`
		} else if s.Settings["appendfsync"] == "no" {
			reason = "it never flushes to disk with appendfsync=no; set it to always or everysec"
		}
	case scenario.AbilitySlowDisk + " etcd":
		if unsafeFlag && !off("unsafe-no-fsync") {
			reason = "it never flushes to disk with --unsafe-no-fsync; leave that out"
		}
	case scenario.AbilitySlowDisk + " zookeeper":
		if off("forceSync") {
			reason = "it never flushes to disk with forceSync=no; leave that out"
		}
	case scenario.AbilitySlowDisk + " mysql":
		for _, name := range []string{"innodb-flush-log-at-trx-commit", "innodb_flush_log_at_trx_commit"} {
			if v := s.Settings[name]; v == "0" || v == "2" {
				reason = "no commit waits for a disk with " + name + "=" + v + "; set it to 1"
			}
		}
	case scenario.AbilityEvict + " redis":
		if s.Settings["maxmemory-policy"] == "noeviction" {
			reason = "with maxmemory-policy=noeviction a full server refuses new locks and forgets none; set another policy or none"
		}
	case scenario.AbilityEvict + " memcached":
		if refuses {
			reason = "with the flag M a full server refuses new locks and forgets none; leave that out"
		}
	case scenario.AbilityFull + " memcached":
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
	if !slices.Contains(scenario.Abilities(), action) {
		return fmt.Errorf("%w: servers have no ability %q: choose from %v", ErrSpec, action, scenario.Abilities())
	}
	reason := reasonAgainst(backend, action)
	switch {
	case action == scenario.AbilityLinks && !hasLinks(d, topology):
		reason = fmt.Sprintf("the servers of %s (%s) know nothing of one another; use cut-clients", backend, topology)
	case action == scenario.AbilityMove && (topology == galera || reason == "" && !hasLinks(d, topology)):
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
		scenario.AbilityClock + " etcd": "etcd keeps leases by a monotonic clock, and Go ignores preloaded clocks",

		scenario.AbilitySlowDisk + " memcached": "memcached writes nothing to disk",

		scenario.AbilityClose + " etcd":      "etcd has no command that closes its clients' connections; use reset",
		scenario.AbilityClose + " zookeeper": "ZooKeeper has no command that closes its clients' connections; use reset",
		scenario.AbilityClose + " memcached": "memcached has no command that closes its clients' connections; use reset",

		scenario.AbilityEvict + " etcd":      "etcd never evicts: when its space is used up it refuses writes; use full",
		scenario.AbilityEvict + " zookeeper": "ZooKeeper never evicts: what does not fit its memory ends it",
		scenario.AbilityEvict + " mysql":     "a database never evicts rows",

		scenario.AbilityFull + " zookeeper": "ZooKeeper has no limit at which it refuses: what does not fit its memory ends it",
		scenario.AbilityFull + " mysql":     "a database refuses when its disk is full, and the disk is this machine's",

		scenario.AbilityFlush + " etcd":      "etcd has no command that forgets everything",
		scenario.AbilityFlush + " zookeeper": "ZooKeeper has no command that forgets everything",
		scenario.AbilityFlush + " mysql":     "a database has no command that forgets everything",

		scenario.AbilityMove + " zookeeper": "ZooKeeper hands over the lead only when its leader ends; use pause, kill or cut",
		scenario.AbilityMove + " mysql":     "a primary hands over nothing by itself; use pause, kill or cut",
	}[action+" "+backend]
}

// hasLinks tells whether the servers of a topology talk to one another.
func hasLinks(d driver, topology string) bool {
	l, ok := d.(linked)
	return ok && len(l.links(topology)) > 0
}
