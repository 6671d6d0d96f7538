package measure

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// struck has two clients and a fault from 100 ms to 2200 ms: client 0 holds the
// lock then and releases it at 1 s, which is confirmed only later; client 1 is
// granted it when the lease of two seconds is over.
func struck(info impls.Info, kind string, events ...scenario.FaultEvent) *story {
	s := newStory(info, 3)
	s.call(0, "a", history.KindAcquire, history.Held, 10, 12).Fence = 1
	s.call(0, "a", history.KindRelease, history.Unknown, 1000, 2400)
	s.call(1, "b", history.KindAcquire, history.Held, 20, 2085).Fence = 2
	s.call(1, "b", history.KindRelease, history.Released, 2100, 2101)
	s.call(1, "c", history.KindAcquire, history.Held, 2500, 2501).Fence = 3
	s.call(1, "c", history.KindRelease, history.Released, 2600, 2601)
	s.in.scenario.Faults = []scenario.Fault{{Kind: kind, For: scenario.Duration(2 * time.Second)}}
	s.in.scenario.Timeout = scenario.Duration(500 * time.Millisecond)
	for i, e := range events {
		e.ID, e.Fault = kind+"-1", kind
		if e.AtNS == 0 {
			e.AtNS = int64(100 + i)
			if e.Event == "heal_started" || e.Event == "healed" {
				e.AtNS += 2100
			}
		}
		e.AtNS = start + e.AtNS*ms
		s.in.events = append(s.in.events, e)
	}
	return s
}

// lasting are the events of a fault that was in force for its time.
func lasting(hit scenario.FaultEvent, effect *scenario.WireEffect) []scenario.FaultEvent {
	list := []scenario.FaultEvent{{Event: "armed"}}
	for _, name := range []string{"injected", "effective", "heal_started", "healed"} {
		e := hit
		e.Event, e.How = name, "dialer; holder found in shared memory"
		if name == "healed" {
			e.Effect = effect
		}
		list = append(list, e)
	}
	return list
}

func onClient(s *story, client uint32, attempt string) scenario.FaultEvent {
	key := uint32(0)
	return scenario.FaultEvent{Client: &client, Key: &key, PID: 4711, Attempt: s.attempt(attempt).String()}
}

func TestFaultsOfTheWire(t *testing.T) {
	names := newStory(leased(), 3)
	holder, waiter := onClient(names, 0, "a"), onClient(names, 1, "b")
	bystander := uint32(2)
	held := &scenario.WireEffect{HeldBytes: 42, Dials: 1}
	for name, tt := range map[string]struct {
		kind   string
		hit    scenario.FaultEvent
		effect *scenario.WireEffect
		missed string // "": effective
	}{
		"a holder cut off":         {"holder-cut", holder, held, ""},
		"nothing was sent":         {"holder-cut", holder, &scenario.WireEffect{}, "no client can have noticed it"},
		"nothing is known":         {"holder-cut", holder, nil, "does not say what it did"},
		"a waiter, not a holder":   {"holder-cut", waiter, held, "had not got the lock yet"},
		"a waiter cut off":         {"next-waiter-cut", waiter, held, ""}, // that it was granted the lock before the heal is no miss
		"a waiter paused":          {"next-waiter-pause", waiter, nil, "no call of client 1"},
		"an answer lost":           {"holder-reply-lost", holder, &scenario.WireEffect{LostBytes: 5, Broken: 1}, ""},
		"a request lost":           {"holder-request-lost", holder, &scenario.WireEffect{LostBytes: 5, Broken: 1}, ""},
		"no request lost":          {"holder-request-lost", holder, &scenario.WireEffect{Broken: 1}, "no client can have noticed it: 1 connection was broken"},
		"no answer lost":           {"holder-reply-lost", holder, &scenario.WireEffect{Broken: 1}, "no client can have noticed it: 1 connection was broken"},
		"late":                     {"holder-delay", holder, &scenario.WireEffect{LateBytes: 9}, ""},
		"held back is not late":    {"holder-throttle", holder, held, "no client can have noticed it"},
		"a clock needs no packets": {"holder-clock", holder, nil, ""},
		"a bystander":              {"random-nonholder-cut", scenario.FaultEvent{Client: &bystander, PID: 4712}, held, ""},
		"a bystander that held":    {"random-nonholder-cut", scenario.FaultEvent{Client: holder.Client, PID: 4711}, held, "was to hold nothing, and held k0"},
		"no target":                {"holder-cut", scenario.FaultEvent{}, held, "does not name its target"},
	} {
		t.Run(name, func(t *testing.T) {
			r := struck(leased(), tt.kind, lasting(tt.hit, tt.effect)...).result()
			got := r.Faults[0]
			if tt.missed == "" && (got.Status != "effective" || got.Mechanism != "dialer" || !strings.HasPrefix(got.Target, "client ")) || tt.missed != "" && (got.Status != "missed" || !strings.Contains(got.Reason, tt.missed)) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A fault on servers needs no holder; its outage is derived from the grants of all
// keys.
func TestFaultsOfServers(t *testing.T) {
	leader := scenario.FaultEvent{Nodes: []scenario.Node{{Name: "etcd-2", Index: 1, Leader: true}}}
	follower := scenario.FaultEvent{Nodes: []scenario.Node{{Name: "etcd-1"}, {Name: "etcd-3"}}}
	for name, tt := range map[string]struct {
		kind   string
		hit    scenario.FaultEvent
		missed string
	}{
		"leader killed":     {"leader-kill", leader, ""},
		"it did not lead":   {"leader-kill", follower, "etcd-1 did not lead"},
		"no servers":        {"leader-pause", scenario.FaultEvent{}, "does not name its target"},
		"followers":         {"minority-pause", follower, ""},
		"cut but not felt":  {"leader-cut-peers", leader, "does not say what it did"},
		"an unknown fault":  {"leader-tickle", leader, "nothing is known of a fault"},
		"a clock of theirs": {"node:2-clock", leader, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := struck(leased(), tt.kind, lasting(tt.hit, nil)...).result()
			got := r.Faults[0]
			if tt.missed != "" {
				if got.Status != "missed" || !strings.Contains(got.Reason, tt.missed) {
					t.Errorf("%+v", got)
				}
				return
			}
			if got.Status != "effective" || got.RecoveryNS != 2501*ms-2204*ms || got.OutageNS != 2085*ms-101*ms || got.LongestWaitNS != 2065*ms {
				t.Errorf("%+v", got)
			}
		})
	}
	r := struck(leased(), "leader-kill", lasting(leader, nil)...).result()
	if got := r.Faults[0].Target; got != "etcd-2 (leader)" {
		t.Errorf("target %q", got)
	}
}

// Unreachable servers cannot grant a lock. They must do so once they are back and
// clients have had a request timeout to notice.
func TestLivenessLeavesOutages(t *testing.T) {
	leader := scenario.FaultEvent{Nodes: []scenario.Node{{Name: "redis", Leader: true}}}
	for after, want := range map[float64]string{2300: scenario.Live, 9000: scenario.Stuck} {
		s := newStory(leased(), 2)
		s.hold(0, "a", 10, 12, 20)
		s.call(1, "b", history.KindAcquire, history.Held, 30, after).Fence = 2
		s.call(1, "b", history.KindRelease, history.Released, after+10, after+11)
		s.in.scenario.Faults = []scenario.Fault{{Kind: "leader-kill", For: scenario.Duration(2 * time.Second)}}
		s.in.events = struck(leased(), "leader-kill", lasting(leader, nil)...).in.events
		if r := s.result(); r.Safety.Liveness != want {
			t.Errorf("granted at %v ms: %s, %s", after, r.Safety.Liveness, r.Safety.Why["liveness"])
		} else if !strings.Contains(r.Safety.Why["liveness"], "2.1s in which faults hit servers") {
			t.Errorf("the time left out is not reported: %s", r.Safety.Why["liveness"])
		}
	}
}

// A key without a holder that no client can acquire is an orphan; without a
// probe their number is not known.
func TestOrphans(t *testing.T) {
	s := newStory(leased(), 2)
	s.hold(0, "a", 10, 12, 20)
	if r := s.result(); r.Safety.Orphans != nil || r.Unmeasured["orphans"] == "" {
		t.Errorf("orphans without a probe: %v", r.Safety.Orphans)
	}
	none := 0
	for _, partly := range []scenario.Probe{{Keys: 2, Free: 1}, {Keys: 2, Free: 2, Listed: &none}} {
		s.in.samples.Probe = &partly
		if r := s.result(); r.Safety.Orphans != nil || r.Unmeasured["orphans"] == "" {
			t.Errorf("orphans of %+v: %v", partly, *r.Safety.Orphans)
		}
	}
	s.in.samples.Probe = &scenario.Probe{Keys: 2, Free: 1, Orphans: []scenario.Orphan{{Key: 1, WaitedNS: 2 * sec, Why: "busy"}}}
	r := s.result()
	if r.Safety.Orphans == nil || *r.Safety.Orphans != 1 || !strings.Contains(strings.Join(r.Warnings, "\n"), "k1 was left taken") {
		t.Errorf("orphans %v, warnings %v", r.Safety.Orphans, r.Warnings)
	}
	// The reader learns how they were looked for.
	if why := r.Safety.Why["orphans"]; !strings.Contains(why, "was not read, as the recipe cannot list it") {
		t.Error(why)
	}
	s.in.samples.Probe.Keys = 3
	if why := s.result().Safety.Why["orphans"]; why != "of 3 keys that were to be probed for orphans 2 were" {
		t.Error(why)
	}
	both := 2
	s.in.samples.Probe = &scenario.Probe{Keys: 2, Free: 2, Listed: &both}
	if why := s.result().Safety.Why["orphans"]; !strings.Contains(why, "all servers were read") {
		t.Error(why)
	}
}

// What a server still has of an attempt is an orphan if the attempt was certainly
// over: not if its outcome is unknown, it was never released, or a late request may
// have written it again; nor if the recipe counts majorities and a server may not have
// answered.
func TestOrphansOnServers(t *testing.T) {
	type step struct {
		kind    history.Kind
		outcome history.Outcome
	}
	acquire, release, clean := history.KindAcquire, history.KindRelease, history.KindCleanup
	for name, tt := range map[string]struct {
		steps []step
		want  int64
	}{
		"released":           {[]step{{acquire, history.Held}, {release, history.Released}}, 1},
		"lost":               {[]step{{acquire, history.Held}, {release, history.Lost}}, 1},
		"failed":             {[]step{{acquire, history.Failed}}, 1},
		"busy":               {[]step{{history.KindTry, history.Busy}}, 1},
		"cleaned up":         {[]step{{acquire, history.Unknown}, {clean, history.Released}}, 1},
		"released at last":   {[]step{{acquire, history.Held}, {release, history.Unknown}, {release, history.Released}}, 1},
		"perhaps not sent":   {[]step{{acquire, history.Unknown}, {clean, history.Lost}}, 0},
		"unknown":            {[]step{{acquire, history.Unknown}}, 0},
		"killed":             {[]step{{acquire, history.Open}}, 0},
		"never released":     {[]step{{acquire, history.Held}}, 0},
		"release unknown":    {[]step{{acquire, history.Held}, {release, history.Unknown}}, 0},
		"not in the history": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(info impls.Info, took float64, fault bool) scenario.Result {
				s := newStory(info, 2)
				at := 10.0
				for _, x := range tt.steps {
					s.call(0, "a", x.kind, x.outcome, at, at+took)
					at += took + 1
				}
				if fault {
					s.in.events = []scenario.FaultEvent{{ID: "f", Fault: "leader-pause", Event: "injected", AtNS: start + 5*ms}, {ID: "f", Fault: "leader-pause", Event: "heal_started", AtNS: start + 50*ms}}
				}
				listed := 1
				s.in.samples.Probe = &scenario.Probe{Keys: 1, Free: 1, Listed: &listed, Left: []scenario.Left{{Server: "127.0.0.1:7003", Attempt: s.attempt("a").String()}}}
				return s.result()
			}
			majority := leased()
			majority.AnswerLimit = func(ttl time.Duration) time.Duration { return ttl / 10 }
			for _, c := range []struct {
				info  impls.Info
				took  float64
				fault bool
				want  int64
			}{
				{leased(), 2, false, tt.want}, {leased(), 2, true, tt.want}, {leased(), 200, false, tt.want},
				{majority, 2, false, tt.want}, {majority, 2, true, 0}, {majority, 200, false, 0},
			} {
				r := run(c.info, c.took, c.fault)
				if r.Safety.Orphans == nil || *r.Safety.Orphans != c.want {
					t.Fatalf("%+v: orphans %v, warnings %v", c, r.Safety.Orphans, r.Warnings)
				}
				named := slices.ContainsFunc(r.Safety.Witnesses, func(w scenario.Witness) bool {
					return w.Class == orphan && strings.Contains(w.Sentence, "127.0.0.1:7003 still had k0") && len(w.Calls) > 0
				})
				if named != (c.want > 0) {
					t.Errorf("%+v: witnesses %+v", c, r.Safety.Witnesses)
				}
			}
		})
	}
}

// Where a recipe does not promise that its tokens grow, one that does not is no
// breach, and is not counted.
func TestTokensOfATopology(t *testing.T) {
	for topology, want := range map[string]string{"single": scenario.Broken, "replicated": scenario.Kept} {
		info := leased()
		info.Fencing, info.Unfenced = true, []string{"replicated"}
		s := newStory(info, 2)
		s.in.scenario.Topology = topology
		s.hold(0, "a", 10, 12, 20)
		s.hold(1, "b", 30, 32, 40)
		for i := range s.in.history.Calls {
			s.in.history.Calls[i].Fence = 7
		}
		r := s.result()
		if r.Safety.Promise != want || (r.Safety.TokenRegressions == nil) != (topology == "replicated") {
			t.Errorf("%s: promise %s, regressions %v", topology, r.Safety.Promise, r.Safety.TokenRegressions)
		}
	}
}

// A fault at the step releasing hit only a client whose release was under way
// until the fault was in force.
func TestFaultsAtTheRelease(t *testing.T) {
	names := newStory(leased(), 3)
	lost := &scenario.WireEffect{LostBytes: 5, Broken: 1}
	for name, tt := range map[string]struct {
		at     int64 // ms
		missed string
	}{
		"under way":  {1200, ""},
		"not yet":    {500, "no call of client 0"},
		"over since": {2500, "no call of client 0"},
	} {
		t.Run(name, func(t *testing.T) {
			hit := onClient(names, 0, "a")
			hit.Step, hit.Effect = "releasing", lost
			list := []scenario.FaultEvent{{Event: "armed"}}
			for _, event := range []string{"injected", "effective"} {
				e := hit
				e.Event, e.AtNS = event, tt.at
				list = append(list, e)
			}
			s := struck(leased(), "step-reply-lost", list...)
			s.in.scenario.Faults[0].Step = "releasing"
			got := s.result().Faults[0]
			if (got.Status == "effective") != (tt.missed == "") || !strings.Contains(got.Reason, tt.missed) {
				t.Errorf("%+v", got)
			}
		})
	}
}
