package run

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/netdrop"
	"github.com/lockbench/lockbench/internal/scenario"
)

// Servers prepared for faults serve all scenarios with faults, and no others; they
// have every feature that one of these scenarios needs, if it is supported.
func TestServersForFaults(t *testing.T) {
	of := func(recipe, topology string, faults ...string) scenario.Scenario {
		sc := scenario.Scenario{Name: recipe, Recipe: recipe, Topology: topology, Clients: 3}
		for _, kind := range faults {
			sc.Faults = append(sc.Faults, scenario.Fault{Kind: kind})
		}
		return sc
	}
	list, keys, err := needs([]scenario.Scenario{
		of("etcd/mutex", "quorum"),                    // 0: plain
		of("etcd/mutex", "quorum", "leader-cut"),      // 1: links
		of("etcd/mutex", "quorum", "holder-pause"),    // 2: as 1
		of("redis/token", "single", "holder-cut"),     // 3: plain
		of("redis/token", "single"),                   // 4: as 3
		of("redis/token", "single", "leader-cut"),     // 5: as 3, for there are no links
		of("redis/token", "replicated", "leader-cut"), // 6: links
		of("mysql/lease-row", "replicated"),           // 7: a keeper, always
		of("reference/mutex", "single", "holder-cut"), // 8: none
	}, all.Find)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range list {
		names = append(names, n.name())
	}
	if got := strings.Join(names, " "); got != "etcd-quorum etcd-quorum-2 redis-single redis-replicated mysql-replicated" {
		t.Fatalf("clusters %s", got)
	}
	for i, want := range []int{0, 1, 1, 2, 2, 2, 3, 4} {
		if keys[i] != list[want].key {
			t.Errorf("scenario %d has %+v, want %s", i, keys[i], names[want])
		}
	}
	if keys[8] != (clusterKey{backend: BackendReference}) {
		t.Errorf("a control has %+v", keys[8])
	}
	links := []bool{false, true, false, true, false}
	for i, n := range list {
		if s := n.spec(); s.Links != links[i] || s.Clock || s.Keeper != (i == 4) {
			t.Errorf("%s is started with %+v", names[i], s)
		}
	}
	if list[1].uses != 2 || list[2].uses != 3 {
		t.Errorf("%d and %d scenarios to come", list[1].uses, list[2].uses)
	}
	if cluster.Missing(scenario.AbilityClock) == nil {
		list, _, err := needs([]scenario.Scenario{of("redis/token", "single"), of("redis/token", "single", "leader-clock"), of("etcd/mutex", "single", "leader-clock")}, all.Find)
		if err != nil || len(list) != 3 || list[0].spec().Clock || !list[1].spec().Clock || list[2].spec().Clock {
			t.Errorf("clocks: %+v, %v", list, err)
		}
	}
}

// A scenario's faults between clients and servers have one carrier, and a
// scenario without such faults has none.
func TestCarrierOfAScenario(t *testing.T) {
	real := servers{cluster: &cluster.Cluster{}}
	for _, c := range []struct {
		faults  []string
		wire    string
		servers servers
		dropper *netdrop.Dropper
		want    string
	}{
		{[]string{"holder-pause", "leader-kill"}, "", real, &netdrop.Dropper{}, ""},
		{[]string{"holder-cut"}, "", real, &netdrop.Dropper{}, byKernel},
		{[]string{"holder-cut", "leader-cut-clients"}, scenario.WireKernel, real, &netdrop.Dropper{}, byKernel},
		{[]string{"holder-cut"}, "", real, nil, byProxy},
		{[]string{"holder-cut"}, scenario.WireProxy, real, &netdrop.Dropper{}, byProxy},
		{[]string{"holder-cut"}, "", servers{}, &netdrop.Dropper{}, byProxy},
		{[]string{"holder-delay"}, "", real, &netdrop.Dropper{}, byProxy},
		{[]string{"holder-cut", "holder-delay"}, "", real, &netdrop.Dropper{}, byProxy},
	} {
		sc := scenario.Scenario{Clients: 2, Wire: c.wire}
		for _, f := range c.faults {
			if _, ok := chaos.ParseKind(f); !ok {
				t.Fatalf("no fault %s", f)
			}
			sc.Faults = append(sc.Faults, scenario.Fault{Kind: f})
		}
		n, err := newClientNetwork("test", sc, c.servers, nil, c.dropper)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		switch {
		case n.dropper != nil && len(n.sources) == 2 && n.proxies == nil:
			got = byKernel
		case n.dropper == nil && n.sources == nil && len(n.proxyAddresses()) == 2:
			got = byProxy
		case n.dropper != nil || n.sources != nil || n.proxies != nil:
			got = "a mixture"
		}
		if got != c.want {
			t.Errorf("%v with wire %q: %q, want %q", c.faults, c.wire, got, c.want)
		}
		if err := n.close(); err != nil {
			t.Error(err)
		}
	}
	seen := map[string]bool{}
	for c := range uint32(2000) {
		ip := sourceOf(c)
		if ip == nil || ip[0] != 127 || ip[1] != 77 || ip[3] == 0 || ip[3] == 255 || seen[ip.String()] {
			t.Fatalf("client %d dials from %v", c, ip)
		}
		seen[ip.String()] = true
	}
}

// What lockbench and the processes that it started used is not used by others.
func TestOthersShareOfTheMachine(t *testing.T) {
	before := machineCPU{total: 100, used: 50, own: 40}
	for _, c := range []struct {
		after        machineCPU
		used, others float64
	}{
		{machineCPU{total: 200, used: 150, own: 140}, 1, 0},
		{machineCPU{total: 200, used: 125, own: 90}, 0.75, 0.25},
		{machineCPU{total: 200, used: 150, own: 141}, 1, 0}, // the two readings are not of one moment
	} {
		if used, others := c.after.since(before); *used != c.used || *others != c.others {
			t.Errorf("%+v: used %v, by others %v", c, *used, *others)
		}
	}
	if used, others := before.since(before); used != nil || others != nil {
		t.Error("a share of no time")
	}
	if m, err := readMachineCPU(); runtime.GOOS == "linux" && (err != nil || m.used <= m.own || m.total < m.used) {
		t.Errorf("%+v, %v", m, err)
	}
}

// Counters are compared between servers that were the same at both readings.
func TestCountersOfServersThatChanged(t *testing.T) {
	at := func(pid int, follower bool, gets int64) account {
		return account{machine: machineCPU{total: time.Duration(gets), used: time.Duration(gets), own: time.Duration(gets)}, nodes: map[string]nodeAccount{
			"a": {pid: pid, follower: follower, counters: map[string]int64{"get": gets}, cpu: time.Duration(gets)},
		}}
	}
	dead := at(1, false, 9)
	dead.err = cluster.ErrServer
	for _, c := range []struct {
		after account
		why   string
	}{
		{at(1, false, 9), ""},
		{at(2, false, 9), "a was started again"},
		{at(1, true, 9), "a changed its part"},
		{dead, "could not be read: server failed"},
	} {
		s := sampler{}
		s.compare(at(1, false, 4), c.after)
		if !strings.Contains(s.why, c.why) || (s.why == "") != (c.why == "") || (len(s.growth) == 1) != (c.why == "") || *s.used != 1 || *s.others != 0 {
			t.Errorf("want %q, got %q and %+v", c.why, s.why, s.growth)
		}
		if c.why == "" && (s.growth[0].Counters["get"] != 5 || s.growth[0].CPUNS != 5) {
			t.Errorf("grown by %+v", s.growth[0])
		}
	}
}

// The reason for one missing topology is not reported for the others, even when
// their servers are gone.
func TestMissingNamesOneTopology(t *testing.T) {
	list := []scenario.Scenario{{Recipe: "mysql/lease-row", Topology: "galera"}, {Recipe: "mysql/lease-row", Topology: "single"}}
	_, keys, err := needs(list, all.Find)
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{Options: Options{Find: all.Find}, keys: keys, missing: map[clusterKey]string{keys[0]: "no provider"}}
	for i, want := range []struct {
		status scenario.Status
		reason string
	}{{scenario.StatusMissing, "no provider"}, {scenario.StatusFailed, "no mysql cluster is up"}} {
		if got := r.scenario(t.Context(), i, list[i]); got.Status != want.status || !strings.Contains(got.Reason, want.reason) {
			t.Errorf("%s: %s, %q", list[i].Topology, got.Status, got.Reason)
		}
	}
}
