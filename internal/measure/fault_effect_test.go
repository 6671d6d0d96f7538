package measure

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// quiet has one client, which holds the lock from 20 ms to 90 ms and from 9 s on,
// and a fault on servers from 100 ms to 2200 ms.
func quiet(kind string) *story {
	node := scenario.FaultEvent{Nodes: []scenario.Node{{Name: "memcached-2", Index: 1, Leader: true}}}
	s := struck(leased(), kind, lasting(node, nil)...)
	s.in.history.Calls = nil
	s.hold(0, "early", 10, 20, 90)
	s.hold(0, "late", 9000, 9001, 9100)
	return s
}

func TestFaultOnUnusedServers(t *testing.T) {
	for name, tt := range map[string]struct {
		kind string
		do   func(s *story)
		want string // "": effective
	}{
		"no client":               {"leader-pause", func(*story) {}, "no client held a lock or asked for one"},
		"no client, of a restart": {"leader-restart", func(*story) {}, "no client held a lock or asked for one"},
		"a client waited":         {"leader-pause", func(s *story) { s.call(1, "w", history.KindAcquire, history.Failed, 50, 500) }, ""},
		"an unserved request":     {"leader-pause", func(s *story) { s.call(1, "w", history.KindAcquire, history.Unknown, 2000, 4000) }, ""},
		"a client held":           {"leader-pause", func(s *story) { s.hold(1, "h", 91, 92, 8000) }, ""},
		"everybody was granted":   {"leader-full", func(s *story) { s.hold(1, "h", 300, 301, 400) }, "no request was rejected"},
		"refused before it":       {"leader-full", func(s *story) { s.call(1, "w", history.KindAcquire, history.Failed, 50, 500) }, "no request was rejected"},
		"a rejected request":      {"leader-full", func(s *story) { s.call(1, "w", history.KindAcquire, history.Failed, 300, 301) }, ""},
		"a majority grants": {"node:1-full", func(s *story) {
			s.in.scenario.Topology, s.in.info.Backend = topologyQuorum, "redis"
			s.hold(1, "h", 300, 301, 400)
		}, ""},
		"asked just after": {"leader-restart", func(s *story) { s.call(1, "w", history.KindAcquire, history.Held, 2500, 2510) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := quiet(tt.kind)
			tt.do(s)
			got := s.result().Faults[0]
			if tt.want == "" && got.Status != "effective" || tt.want != "" && (got.Status != "missed" || !strings.Contains(got.Reason, tt.want)) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestDoubtfulFaults(t *testing.T) {
	asks := func(s *story) { s.call(1, "w", history.KindAcquire, history.Failed, 50, 500) }
	holds := func(s *story) { s.hold(1, "h", 91, 92, 1000) }
	mostly := func(s *story) {
		s.hold(1, "h", 1, 2, 95)
		s.hold(2, "i", 50, 300, 9000)
	}
	for name, tt := range map[string]struct {
		kind, topology, backend string
		do                      func(s *story)
		want                    string // of the warnings; "": none
	}{
		"nothing to lose":           {"leader-restart", "single", "redis", asks, "no client held a lock at that moment"},
		"something to lose":         {"leader-restart", "single", "redis", holds, ""},
		"a pause loses nothing":     {"leader-pause", "single", "redis", asks, "no client held a lock when it came, and one did for 2 % of the time"},
		"servers that agree":        {"leader-kill", "quorum", "etcd", asks, "no client held a lock when it came"},
		"held but for a moment":     {"leader-kill", "quorum", "etcd", mostly, ""},
		"server of the key unknown": {"node:2-pause", "sharded", "memcached", holds, "each server has keys of its own"},
		"whose key, is known":       {"leader-serving-holder-pause", "sharded", "memcached", holds, ""},
		"one of those who all know": {"node:2-pause", "quorum", "etcd", holds, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := quiet(tt.kind)
			s.in.scenario.Topology, s.in.info.Backend = tt.topology, tt.backend
			s.in.scenario.TTL = scenario.Duration(2 * time.Second)
			tt.do(s)
			r := s.result()
			if r.Faults[0].Status != "effective" {
				t.Fatalf("%+v", r.Faults[0])
			}
			is := func(w string) bool { return strings.Contains(w, r.Faults[0].ID) }
			if i := slices.IndexFunc(r.Warnings, is); (i >= 0) != (tt.want != "") || i >= 0 && !strings.Contains(r.Warnings[i], tt.want) {
				t.Errorf("%q", r.Warnings)
			}
		})
	}
}
