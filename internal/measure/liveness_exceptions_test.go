package measure

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

func kindOf(t *testing.T, name string) scenario.FaultKind {
	k, ok := chaos.ParseKind(name)
	if !ok {
		t.Fatalf("no fault %q", name)
	}
	return k
}

// Faults that lasted at the same time are not counted twice.
func TestTimeOfFaultsOnServers(t *testing.T) {
	d := &derivation{input: &input{}, faults: []fault{
		{what: kindOf(t, "node:2-pause"), injected: 300, healing: 500, healed: 510},
		{what: kindOf(t, "node:1-pause"), injected: 100, healing: 400, healed: 405},
		{what: kindOf(t, "node:3-pause"), injected: 450, healing: 460, healed: 460},
		{what: kindOf(t, "leader-clock"), injected: 600, healing: 900, healed: 900}, // they serve
		{what: kindOf(t, "holder-pause"), injected: 600, healing: 900, healed: 900},
		{what: kindOf(t, "leader-pause")}, // missed
	}}
	if got := d.leftOut(); !strings.HasPrefix(got, "; 410ns in which faults hit servers") {
		t.Error(got)
	}
}

// three are the servers of a quorum, with the settings that they report.
func three(backend string) *scenario.ClusterInfo {
	return &scenario.ClusterInfo{
		Backend: backend, Nodes: []scenario.NodeInfo{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "s", Role: scenario.RoleSentinel}},
		Settings: map[string]string{
			"election-timeout": "1s", "tickTime": "2000", "syncLimit": "5",
		},
	}
}

// enduring is a recipe that promises to get along without a minority.
func enduring(backend string) impls.Info {
	info := leased()
	info.Backend, info.Polls, info.Properties = backend, false, []impls.Property{impls.Available}
	return info
}

// How long after a fault the lock may stay without a holder follows from the
// servers that the fault hit, their settings and the request timeout.
func TestRecoveryIsBounded(t *testing.T) {
	const ever = -1
	for _, tt := range []struct {
		kind, backend, topology string
		want                    time.Duration
	}{
		{"leader-kill", "etcd", "quorum", 4500 * time.Millisecond},
		{"leader-pause", "etcd", "quorum", 4500 * time.Millisecond},
		{"leader-move", "etcd", "quorum", 4500 * time.Millisecond},
		{"each-restart", "etcd", "quorum", 4500 * time.Millisecond},
		{"node:1-pause", "etcd", "quorum", 4500 * time.Millisecond},
		{"follower-pause", "etcd", "quorum", 500 * time.Millisecond},
		{"minority-kill", "etcd", "quorum", 500 * time.Millisecond},
		{"minority-cut", "etcd", "quorum", 4500 * time.Millisecond},
		{"minority-cut-peers", "zookeeper", "quorum", 13500 * time.Millisecond},
		{"leader-cut-clients", "etcd", "quorum", 500 * time.Millisecond},
		{"leader-pause", "zookeeper", "quorum", 13500 * time.Millisecond},
		{"minority-pause", "zookeeper", "quorum", 500 * time.Millisecond},
		{"node:2-pause", "redis", "quorum", 500 * time.Millisecond},
		// No majority is left, or the servers' delay is not known.
		{"majority-pause", "etcd", "quorum", ever},
		{"all-kill", "etcd", "quorum", ever},
		{"leader-delay", "etcd", "quorum", ever},
		{"leader-slow-disk", "etcd", "quorum", ever},
		{"minority-cut-peers", "etcd", "quorum", ever},
		{"leader-kill", "etcd", "single", ever},
		{"leader-kill", "redis", "replicated", ever},
	} {
		t.Run(tt.kind+" of "+tt.backend+" "+tt.topology, func(t *testing.T) {
			f := fault{id: "x", what: kindOf(t, tt.kind), injected: 100, healing: 200, nodes: []scenario.Node{{Name: "a"}}}
			switch f.what.Target {
			case scenario.TargetMajority, scenario.TargetAll:
				f.nodes = append(f.nodes, scenario.Node{Name: "b"})
			case scenario.TargetEach:
				f.nodes, f.rounds = append(f.nodes, scenario.Node{Name: "b"}, scenario.Node{Name: "c"}), []int64{100, 150, 180}
			}
			in := &input{info: enduring(tt.backend), cluster: three(tt.backend)}
			in.scenario.Topology, in.scenario.Timeout = tt.topology, scenario.Duration(500*time.Millisecond)
			d := &derivation{input: in, faults: []fault{f}}
			r, bounded := d.recovers(f)
			if got := r.within(); bounded != (tt.want != ever) || bounded && got != tt.want {
				t.Errorf("%v %v", got, bounded)
			}
			// It is bounded by a promise, by the settings, and only if no other fault
			// took the rest.
			unsure := []func(){
				func() { in.info.Properties = nil },
				func() { in.cluster = nil },
				func() {
					in.cluster = three(tt.backend)
					d.faults = append(d.faults, fault{id: "y", what: kindOf(t, "node:2-pause"), injected: 210, healing: 300, nodes: []scenario.Node{{Name: "b"}}})
				},
			}
			if r.agree > 0 {
				unsure = append(unsure, func() { in.cluster = three(tt.backend); in.cluster.Settings = nil })
			}
			for i, change := range unsure {
				in.info, in.cluster, d.faults = enduring(tt.backend), three(tt.backend), []fault{f}
				change()
				if _, bounded := d.recovers(f); bounded {
					t.Errorf("bounded all the same (%d)", i)
				}
			}
		})
	}
}

// A quorum that lost one of its servers grants the lock again while that is
// away; one that does not is stuck, whatever else lasts.
func TestLivenessUnderAFaultThatLeavesAMajority(t *testing.T) {
	for name, tt := range map[string]struct {
		kind    string
		granted float64 // ms
		has     []impls.Property
		want    string
		why     string
	}{
		// A request's half second, and the recipe's bound of two and a half.
		"in time":            {"follower-pause", 3000, enduring("etcd").Properties, scenario.Live, "follower-pause left servers enough to go on, so of it no more is left out than 500ms: a request's time of 500ms"},
		"late":               {"follower-pause", 3300, enduring("etcd").Properties, scenario.Stuck, "it did not recover from follower-pause-1, which hit a at 0.101 s, though it left servers enough"},
		"after an election":  {"leader-pause", 7000, enduring("etcd").Properties, scenario.Live, "no more is left out than 4.5s: 4s to agree on a leader (twice up to two election timeouts of 1s) and a request's time of 500ms"},
		"without one":        {"leader-pause", 7300, enduring("etcd").Properties, scenario.Stuck, "it did not recover from leader-pause-1"},
		"not promised":       {"leader-pause", 9000, nil, scenario.Live, "8.9s in which faults hit servers"},
		"most of them away":  {"majority-pause", 9000, enduring("etcd").Properties, scenario.Live, "8.9s in which faults hit servers"},
		"never again at all": {"majority-pause", 13000, enduring("etcd").Properties, scenario.Stuck, "key 0 stayed free and wanted for 3.499s"},
	} {
		t.Run(name, func(t *testing.T) {
			info := enduring("etcd")
			info.Properties = tt.has
			s := newStory(info, 2)
			s.in.cluster, s.in.samples.End = three("etcd"), start+20*sec
			s.in.scenario.Topology, s.in.scenario.Timeout = "quorum", scenario.Duration(500*time.Millisecond)
			s.hold(0, "a", 10, 12, 101)
			s.call(1, "b", history.KindAcquire, history.Held, 30, tt.granted).Fence = uint64(99_000_000)
			s.call(1, "b", history.KindRelease, history.Released, tt.granted+10, tt.granted+11)
			s.in.scenario.Faults = []scenario.Fault{{Kind: tt.kind}}
			hit := []scenario.Node{{Name: "a", Leader: strings.HasPrefix(tt.kind, "leader")}}
			if strings.HasPrefix(tt.kind, "majority") {
				hit = []scenario.Node{{Name: "a"}, {Name: "b"}}
			}
			for _, e := range []struct {
				name string
				at   int64
			}{{"armed", 0}, {"injected", 101}, {"effective", 102}, {"heal_started", 9000}, {"healed", 9001}} {
				s.in.events = append(s.in.events, scenario.FaultEvent{ID: tt.kind + "-1", Fault: tt.kind, Event: e.name, AtNS: start + e.at*ms, Nodes: hit, How: "SIGSTOP"})
			}
			r := s.result()
			if r.Faults[0].Status != "effective" {
				t.Fatalf("%+v", r.Faults[0])
			}
			if why := r.Safety.Why["liveness"]; r.Safety.Liveness != tt.want || !strings.Contains(why, tt.why) {
				t.Errorf("%s: %s", r.Safety.Liveness, why)
			}
		})
	}
}

// A server that fell silent keeps its clients' connections, and they go on
// asking it until they have noticed; one that ended does not.
func TestSilenceIsNoticedLate(t *testing.T) {
	for kind, want := range map[string]string{
		"minority-pause": "12s until clients are done with a server that fell silent and a request's time of 500ms",
		"leader-pause":   "the longer of 4s to agree on a leader (twice up to two election timeouts of 1s) and 12s until clients are done with a server that fell silent, and a request's time of 500ms",
		"leader-kill":    "4s to agree on a leader (twice up to two election timeouts of 1s) and a request's time of 500ms",
		"minority-kill":  "a request's time of 500ms",
	} {
		in := &input{info: enduring("etcd"), cluster: three("etcd")}
		in.info.DetectionTimeout = func(ttl, timeout time.Duration) time.Duration { return 5*ttl + 4*timeout }
		in.scenario.Topology, in.scenario.Timeout, in.scenario.TTL = "quorum", scenario.Duration(500*time.Millisecond), scenario.Duration(2*time.Second)
		f := fault{id: "x", what: kindOf(t, kind), injected: 100, healing: 200, nodes: []scenario.Node{{Name: "a"}}}
		d := &derivation{input: in, faults: []fault{f}}
		r, bounded := d.recovers(f)
		if !bounded || r.String() != want || r.within() != max(r.agree, r.notice)+500*time.Millisecond {
			t.Errorf("%s: %s, %v", kind, r, r.within())
		}
	}
}

// Servers that are hit one after another are a liveness exception each time.
func TestLivenessExceptionOfEachServer(t *testing.T) {
	f := fault{id: "each-pause-1", what: kindOf(t, "each-pause"), injected: 1000, healing: 30 * sec, rounds: []int64{1000, 10 * sec, 20 * sec}}
	in := &input{info: enduring("etcd"), cluster: three("etcd"), history: &history.History{Streams: []history.Stream{{Client: 3}}}}
	in.scenario.Topology, in.scenario.Timeout = "quorum", scenario.Duration(time.Second)
	d := &derivation{input: in, faults: []fault{f}}
	want := []checker.Interval{{From: 1000, To: 5*sec + 1000}, {From: 10 * sec, To: 15 * sec}, {From: 20 * sec, To: 25 * sec}}
	got := d.boundedExceptions()
	if paused := d.paused(); len(paused) > 0 {
		t.Errorf("clients count as paused: %+v", paused)
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

// A key that is free while the machine does not let its waiters run is not stuck,
// and the report says what was left out; a pause by a fault is no stall of the machine.
func TestStallsOfTheMachine(t *testing.T) {
	free := func(stalls ...scenario.Stall) scenario.Safety {
		s := newStory(leased(), 2)
		s.call(0, "p", history.KindAcquire, history.Held, 1000, 1001)
		s.call(0, "p", history.KindRelease, history.Released, 1010, 1011)
		s.call(1, "q", history.KindAcquire, history.Held, 1005, 9000)
		s.call(1, "q", history.KindRelease, history.Released, 9001, 9002)
		s.in.samples.Workers = []scenario.WorkerSample{{Clients: []uint32{0, 1}, Stalls: stalls}}
		return s.result().Safety
	}
	if got := free(); got.Liveness != scenario.Stuck {
		t.Errorf("liveness %s: %v", got.Liveness, got.Why)
	}
	if got := free(scenario.Stall{From: start + 1100*ms, To: start + 8900*ms}); got.Liveness != scenario.Live || !strings.Contains(got.Why["liveness"], "the machine kept workers from running, up to 7.8s") {
		t.Errorf("liveness %s: %v", got.Liveness, got.Why)
	}
	s := paused(leased())
	s.in.samples.Workers = []scenario.WorkerSample{{Clients: []uint32{0}, Stalls: []scenario.Stall{{From: start + 1201*ms, To: start + 7200*ms}}}}
	if why := s.result().Safety.Why["liveness"]; strings.Contains(why, "the machine") {
		t.Errorf("a fault's pause counts as a stall of the machine: %s", why)
	}
}

// stamped is an event of a fault and when it came, in ms.
type stamped struct {
	event string
	at    int64
}

// freeBeside is what is found of a key that is free and wanted from 0.1 s on until it is
// granted, at a time in ms, while n faults of a kind come one after another. events are
// those of one fault; its number counts from 0.
func freeBeside(granted float64, n int, kind string, node scenario.Node, events func(number int) []stamped) scenario.Safety {
	s := newStory(enduring("etcd"), 2)
	s.in.cluster, s.in.samples.End = three("etcd"), start+20*sec
	s.in.scenario.Topology, s.in.scenario.Timeout = "quorum", scenario.Duration(500*time.Millisecond)
	s.hold(0, "a", 10, 12, 100)
	s.call(1, "b", history.KindAcquire, history.Held, 30, granted).Fence = uint64(99_000_000)
	s.call(1, "b", history.KindRelease, history.Released, granted+10, granted+11)
	for number := range n {
		s.in.scenario.Faults = append(s.in.scenario.Faults, scenario.Fault{Kind: kind, At: scenario.Duration(number)})
		for _, e := range append([]stamped{{"armed", 0}}, events(number)...) {
			s.in.events = append(s.in.events, scenario.FaultEvent{
				ID: kind + "-" + strconv.Itoa(number+1), Fault: kind, Event: e.event, AtNS: start + e.at*ms, Nodes: []scenario.Node{node}, How: "done",
			})
		}
	}
	return s.result().Safety
}

// Six faults that each leave a majority excuse half a second each, and not eleven; the
// witness names them. Without a fault it says so.
func TestExcusesAreCapped(t *testing.T) {
	free := func(faults int, granted float64) scenario.Safety {
		return freeBeside(granted, faults, "follower-pause", scenario.Node{Name: "a"}, func(n int) []stamped {
			at := int64(200 + 2000*n)
			return []stamped{{"injected", at}, {"effective", at + 1}, {"heal_started", at + 600}, {"healed", at + 601}}
		})
	}
	got := free(6, 11_100)
	if got.Liveness != scenario.Stuck || !strings.Contains(got.Why["liveness"], "for 11s, 3s of it a liveness exception for faults") || got.LongestStuckNS != 8*sec {
		t.Errorf("%s: %s, %d", got.Liveness, got.Why["liveness"], got.LongestStuckNS)
	}
	if len(got.Witnesses) != 1 || !strings.Contains(got.Witnesses[0].Sentence, "3s of that a liveness exception") || !strings.Contains(got.Witnesses[0].Sentence, "; a was paused from 0.200 s") {
		t.Errorf("%+v", got.Witnesses)
	}
	if got := free(6, 2500); got.Liveness != scenario.Live {
		t.Errorf("granted soon: %s: %s", got.Liveness, got.Why["liveness"])
	}
	if got := free(0, 9000); len(got.Witnesses) != 1 || !strings.Contains(got.Witnesses[0].Sentence, "; no fault was in force, and none had been before") {
		t.Errorf("without a fault: %+v", got.Witnesses)
	}
}

// A leader that hands over excuses the time until that is done, and a request's, not an
// election: six moves 1.8 s apart cannot excuse a lock that no client gets, unless the
// servers took so long each time.
func TestMovesOfTheLeaderExcuseTheHandover(t *testing.T) {
	free := func(granted float64, handover int64) scenario.Safety {
		return freeBeside(granted, 6, "leader-move", scenario.Node{Name: "a", Leader: true}, func(n int) []stamped {
			at := int64(200 + 1800*n)
			return []stamped{{"injected", at}, {"effective", at + handover}}
		})
	}
	got := free(11_100, 20)
	if why := got.Why["liveness"]; got.Liveness != scenario.Stuck || !strings.Contains(why, "for 11s, 3.12s of it a liveness exception") || !strings.Contains(why, "no more is left out than 520ms: 20ms to agree on a leader (as the servers reported) and a request's time of 500ms") {
		t.Errorf("%s: %s", got.Liveness, why)
	}
	if got := free(3300, 20); got.Liveness != scenario.Live {
		t.Errorf("granted within the bound and what two moves excuse: %s: %s", got.Liveness, got.Why["liveness"])
	}
	if got := free(6000, 1200); got.Liveness != scenario.Live {
		t.Errorf("the servers took 1.2 s each time: %s: %s", got.Liveness, got.Why["liveness"])
	}
}
