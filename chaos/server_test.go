package chaos

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
)

const ms = scenario.Duration(time.Millisecond)

// serverRun runs one fault against fake servers.
func serverRun(t *testing.T, f scenario.Fault, servers fakeServers, network fakeWires) (*tape, []scenario.FaultEvent) {
	t.Helper()
	played := &tape{}
	servers.tape, network.tape = played, played
	if servers.n == 0 {
		servers.n = 3
	}
	events, kills := runWith(t, t.Context(), Schedule{
		Faults: []scenario.Fault{f}, Servers: servers, Wires: network, Journal: fakeJournal{played}, Keys: []string{"a", "b", "c", "d", "lock"},
		Gate: &fakeGate{comes: 2}, InForce: func(_ string, inForce bool) { _ = played.note("in force %v", inForce) },
	}, time.Minute)
	if len(kills) > 0 {
		t.Errorf("clients were killed: %v", kills)
	}
	return played, events
}

var (
	lasting = []string{"armed", "injected", "effective", "heal_started", "healed", "first_grant"}
	instant = []string{"armed", "injected", "effective", "first_grant"}
	miss    = []string{"armed", "missed"}
)

// What each fault of servers does, in which order, and how it is undone.
func TestServerFaults(t *testing.T) {
	fault := func(kind string) scenario.Fault { return scenario.Fault{Kind: kind, For: 5 * ms} }
	by := func(kind string, by scenario.Duration) scenario.Fault {
		return scenario.Fault{Kind: kind, For: 5 * ms, By: by}
	}
	broken := fakeWires{effects: &[]faultnet.Effect{{Broken: 2}}}
	for _, tt := range []struct {
		fault   scenario.Fault
		servers fakeServers
		network fakeWires
		events  []string
		calls   string
	}{
		{fault("leader-kill"), fakeServers{}, fakeWires{}, lasting, "kill 0, restart 0"},
		{scenario.Fault{Kind: "leader-restart"}, fakeServers{}, fakeWires{}, lasting, "kill 0, restart 0"},
		{fault("node:2-pause"), fakeServers{}, fakeWires{}, lasting, "pause 1, resume 1"},
		{fault("all-pause"), fakeServers{}, fakeWires{}, lasting, "pause 0, pause 1, pause 2, resume 2, resume 1, resume 0"},
		{fault("leader-cut"), fakeServers{}, fakeWires{}, lasting, "links leader-cut-1 [0] true, apply leader-cut-1 [] [10.0.0.1:1], lift leader-cut-1, join leader-cut-1"},
		{fault("leader-cut-peers"), fakeServers{}, fakeWires{}, lasting, "links leader-cut-peers-1 [0] true, join leader-cut-peers-1"},
		{fault("node:3-cut-clients"), fakeServers{}, fakeWires{}, lasting, "apply node:3-cut-clients-1 [] [10.0.0.3:1], lift node:3-cut-clients-1"},
		{fault("all-delay"), fakeServers{cannot: map[string]error{"cut-peers": errors.New("no links")}}, fakeWires{}, lasting, "apply all-delay-1 [] [10.0.0.1:1 10.0.0.2:1 10.0.0.3:1], lift all-delay-1"},
		{fault("leader-cut"), fakeServers{n: 1, cannot: map[string]error{"cut-peers": errors.New("no links")}}, fakeWires{}, lasting, "apply leader-cut-1 [] [10.0.0.1:1], lift leader-cut-1"},
		{fault("leader-cut"), fakeServers{cannot: map[string]error{"cut-peers": errors.New("no links")}}, fakeWires{}, miss, ""},
		{scenario.Fault{Kind: "leader-reset"}, fakeServers{}, broken, instant, "apply leader-reset-1 [] [10.0.0.1:1], lift leader-reset-1"},
		{scenario.Fault{Kind: "leader-reset"}, fakeServers{}, fakeWires{}, miss, "apply leader-reset-1 [] [10.0.0.1:1], lift leader-reset-1"},
		{fault("leader-refuse"), fakeServers{}, broken, lasting, "apply leader-refuse-1 [] [10.0.0.1:1], lift leader-refuse-1"},
		{by("leader-clock", -3*ms), fakeServers{}, fakeWires{}, lasting, "clock 0 -3ms, clock 0 0s"},
		{by("leader-slow-disk", 9*ms), fakeServers{}, fakeWires{}, lasting, "slow 0 9ms, fast 0"},
		{scenario.Fault{Kind: "leader-move"}, fakeServers{}, fakeWires{}, instant, "move"},
		{scenario.Fault{Kind: "leader-close"}, fakeServers{closed: 3}, fakeWires{}, instant, "close 0"},
		{scenario.Fault{Kind: "leader-close"}, fakeServers{}, fakeWires{}, miss, "close 0"},
		{scenario.Fault{Kind: "leader-evict"}, fakeServers{}, fakeWires{}, instant, "evict 0 lock"},
		{fault("all-full"), fakeServers{n: 2}, fakeWires{}, lasting, "fill 0, fill 1, drain 1, drain 0"},
		{scenario.Fault{Kind: "leader-flush"}, fakeServers{}, fakeWires{}, instant, "flush 0"},
		{scenario.Fault{Kind: "each-restart"}, fakeServers{}, fakeWires{}, nil, "kill 0, restart 0, healthy, kill 1, restart 1, healthy, kill 2, restart 2, healthy"},
		{scenario.Fault{Kind: "each-pause", For: ms}, fakeServers{n: 2}, fakeWires{}, nil, "pause 0, resume 0, healthy, pause 1, resume 1, healthy"},
		{fault("leader-serving-holder-kill"), fakeServers{}, fakeWires{peers: []string{"10.0.0.2:1", "sentinel:1"}}, lasting, "kill 1, restart 1"},
		{fault("leader-serving-holder-kill"), fakeServers{}, fakeWires{peers: []string{"10.0.0.2:1", "10.0.0.3:1"}}, lasting, "kill 0, restart 0"},
		{fault("node:4-kill"), fakeServers{}, fakeWires{}, miss, ""},
		{fault("minority-kill"), fakeServers{n: 2}, fakeWires{}, miss, ""},
		{fault("leader-kill"), fakeServers{cannot: map[string]error{"kill": errors.New("external")}}, fakeWires{}, miss, ""},
		{fault("leader-kill"), fakeServers{leaders: func() (int, error) { return -1, ErrEquals }}, fakeWires{}, miss, ""},
	} {
		played, events := serverRun(t, tt.fault, tt.servers, tt.network)
		calls := played.played("kill", "restart", "pause", "resume", "links", "join", "apply", "lift", "clock", "slow", "fast", "move", "close", "evict", "fill", "drain", "flush", "healthy")
		if got := strings.Join(calls, ", "); got != tt.calls {
			t.Errorf("%s: did %s\nwant %s", tt.fault.Kind, got, tt.calls)
		}
		if tt.events != nil && !slices.Equal(names(events), tt.events) {
			t.Errorf("%s: events %v, want %v (%+v)", tt.fault.Kind, names(events), tt.events, events[len(events)-1])
		}
		for _, e := range events {
			if e.Event == "injected" && (len(e.Nodes) == 0 || e.Nodes[0].Name == "" || e.How == "") {
				t.Errorf("%s: the event does not name its servers: %+v", tt.fault.Kind, e)
			}
		}
		if begun, ended := played.played("begin"), played.played("end"); len(begun) != len(ended) {
			t.Errorf("%s: the journal has %v and %v", tt.fault.Kind, begun, ended)
		}
		times := strings.Count(tt.calls, "healthy") // of a rolling fault
		if slices.Equal(tt.events, lasting) {
			times = 1
		}
		if got, want := played.played("in force"), slices.Repeat([]string{"in force true", "in force false"}, times); !slices.Equal(got, want) {
			t.Errorf("%s: reported %q, want %q", tt.fault.Kind, got, want)
		}
	}
}

// The journal knows of a fault before anything is done, and of its end when all
// is undone; what it refuses is not done.
func TestTheJournalComesFirst(t *testing.T) {
	played, _ := serverRun(t, scenario.Fault{Kind: "leader-kill"}, fakeServers{}, fakeWires{})
	want := []string{"begin leader-kill-1: leader-kill of node-1, stops 0", "kill 0", "in force true", "restart 0", "in force false", "end leader-kill-1"}
	if got := played.played(""); !slices.Equal(got, want) {
		t.Errorf("did %q, want %q", got, want)
	}
	full := &tape{meddle: func(call string) error {
		if strings.HasPrefix(call, "begin") {
			return errors.New("the disk is full")
		}
		return nil
	}}
	events, _ := runWith(t, t.Context(), Schedule{Faults: []scenario.Fault{{Kind: "leader-kill"}}, Servers: fakeServers{tape: full, n: 1}, Journal: fakeJournal{full}}, time.Minute)
	if len(full.played("kill")) > 0 || !equal(names(events), "armed", "missed") || !strings.Contains(events[1].Reason, "the disk is full") {
		t.Errorf("did %q, events %+v", full.played(""), events)
	}
}

// Some of a quorum could be hit and some could not: nothing stays done, and
// nothing counts as injected.
func TestQuorumFaultsAreNeverHalfDone(t *testing.T) {
	for kind, want := range map[string]string{
		"all-pause":    "pause 0, pause 1, resume 1, resume 0",
		"all-kill":     "kill 0, kill 1, restart 0, restart 1",
		"all-clock":    "clock 0 0s, clock 1 0s, clock 1 0s, clock 0 0s",
		"each-restart": "kill 0, restart 0, kill 1, restart 1",
	} {
		hit := 0
		played := &tape{meddle: func(call string) error {
			if verb, _, _ := strings.Cut(call, " "); verb == "pause" || verb == "kill" || verb == "clock" {
				if hit++; hit == 2 {
					return errors.New("it resists")
				}
			}
			return nil
		}}
		events, _ := runWith(t, t.Context(), Schedule{Faults: []scenario.Fault{{Kind: kind}}, Servers: fakeServers{tape: played, n: 3}}, time.Minute)
		got := played.played("pause", "resume", "kill", "restart", "clock")
		if strings.HasPrefix(kind, "all-kill") {
			slices.Sort(got[2:]) // they start side by side
		}
		if strings.Join(got, ", ") != want || !equal(names(events), "armed", "missed") || !strings.Contains(events[1].Reason, "it resists") {
			t.Errorf("%s: did %v, want %s; events %+v", kind, got, want, events)
		}
	}
}

// The lead moves between the look and the injection: the former leader is not
// hit.
func TestLeaderFaultsFollowTheLead(t *testing.T) {
	played := &tape{}
	looks := 0
	servers := fakeServers{tape: played, n: 3, leaders: func() (int, error) {
		if looks++; looks == 1 {
			return 0, nil
		}
		return 2, nil
	}}
	events, _ := runWith(t, t.Context(), Schedule{Faults: []scenario.Fault{{Kind: "leader-kill"}}, Servers: servers}, time.Minute)
	if got := played.played("kill"); !slices.Equal(got, []string{"kill 2"}) {
		t.Errorf("killed %v; events %+v", got, events)
	}
	if n := events[1].Nodes; len(n) != 1 || n[0].Index != 2 || !n[0].Leader {
		t.Errorf("the event names %+v", n)
	}

	// And while it is injected: it is undone, and missed.
	played, looks = &tape{}, 0
	servers.tape = played
	servers.leaders = func() (int, error) {
		if looks++; looks <= 2 {
			return 0, nil
		}
		return 2, nil
	}
	events, _ = runWith(t, t.Context(), Schedule{Faults: []scenario.Fault{{Kind: "leader-slow-disk", By: ms}}, Servers: servers}, time.Minute)
	if got := played.played(""); !slices.Equal(got, []string{"slow 0 1ms", "fast 0"}) || !equal(names(events), "armed", "missed") {
		t.Errorf("did %v; events %+v", got, events)
	}
}

// No server leads for a while: the fault waits; no server leads to the end: it is
// missed.
func TestLeaderFaultsWaitForALeader(t *testing.T) {
	for _, comes := range []bool{true, false} {
		looks := 0
		servers := fakeServers{tape: &tape{}, n: 3, leaders: func() (int, error) {
			if looks++; comes && looks > 2 {
				return 1, nil
			}
			return -1, errors.New("an election")
		}}
		window := time.Minute
		if !comes {
			window = 20 * time.Millisecond
		}
		events, _ := runWith(t, t.Context(), Schedule{Faults: []scenario.Fault{{Kind: "leader-flush"}}, Servers: servers}, window)
		if got := names(events); comes != slices.Contains(got, "injected") || comes == slices.Contains(got, "missed") {
			t.Errorf("a leader comes: %v; events %+v", comes, events)
		}
	}
}

// Minority, majority and follower never take the leader for what it is not, and
// the seed alone decides among the rest.
func TestServersAreChosenBySeed(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(30) {
		for kind, size := range map[string]int{"minority-flush": 2, "majority-flush": 3, "follower-flush": 1} {
			var first []scenario.Node
			for range 2 {
				servers := fakeServers{tape: &tape{}, n: 5, leaders: func() (int, error) { return 3, nil }}
				events, _ := runWith(t, t.Context(), Schedule{Seed: seed + 1, Faults: []scenario.Fault{{Kind: kind}}, Servers: servers}, time.Minute)
				nodes := events[1].Nodes
				leads := slices.ContainsFunc(nodes, func(n scenario.Node) bool { return n.Index == 3 && n.Leader })
				if len(nodes) != size || leads != (kind == "majority-flush") {
					t.Fatalf("%s chose %+v", kind, nodes)
				}
				if first != nil && !slices.Equal(first, nodes) {
					t.Fatalf("%s: the same seed chose %+v and %+v", kind, first, nodes)
				}
				first = nodes
			}
			for _, n := range first {
				seen[kind+n.Name] = true
			}
		}
	}
	if len(seen) != 4+5+4 {
		t.Errorf("30 seeds chose only %v", seen)
	}
}

// Servers that are not healthy again stop a rolling fault, which then has hit
// some only.
func TestRollingWaitsForHealth(t *testing.T) {
	for name, sick := range map[string]int{"for a while": 3, "for ever": 1 << 30} {
		asked := 0
		played := &tape{meddle: func(call string) error {
			if call == "healthy" {
				if asked++; asked <= sick {
					return errors.New("a replica lags")
				}
			}
			return nil
		}}
		window := time.Minute
		if name == "for ever" {
			window = 150 * time.Millisecond
		}
		events, _ := runWith(t, t.Context(), Schedule{Faults: []scenario.Fault{{Kind: "each-restart"}}, Servers: fakeServers{tape: played, n: 2}}, window)
		if name == "for ever" {
			if got := played.played("kill"); !equal(names(events), "armed", "missed") || !strings.Contains(events[1].Reason, "only 0 of 2") || len(got) != 1 {
				t.Errorf("%s: did %v, events %+v", name, got, events)
			}
		} else if got := names(events); !equal(got, "armed", "injected", "effective", "note", "note", "heal_started", "healed", "first_grant") {
			t.Errorf("%s: events %v", name, got)
		}
	}
}

// Two faults that need the same part of a server: the later one is missed.
func TestFaultsThatWouldUndoEachOther(t *testing.T) {
	for _, tt := range []struct{ first, later, do, undo string }{
		{"node:1-pause", "node:1-kill", "pause 0", "resume 0"},
		{"node:1-full", "node:1-restart", "fill 0", "drain 0"},
		{"node:1-full", "node:1-flush", "fill 0", "drain 0"},
	} {
		played, log := &tape{}, newLog(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			await(t, log, tt.first+"-1 effective", tt.later+"-2 missed", "node:2-flush-3 first_grant")
			cancel()
		}()
		events, _ := runWith(t, ctx, Schedule{
			Faults:  []scenario.Fault{{Kind: tt.first, For: 30000 * ms}, {Kind: tt.later, At: 50 * ms}, {Kind: "node:2-flush", At: 50 * ms}},
			Servers: fakeServers{tape: played, n: 3, leaders: func() (int, error) { return -1, ErrEquals }}, Log: log,
		}, time.Minute)
		if got := played.played(""); !slices.Equal(got, []string{tt.do, "flush 1", tt.undo}) {
			t.Errorf("did %v", got)
		}
		for _, e := range events {
			if e.ID == tt.later+"-2" && e.Event == "missed" && !strings.Contains(e.Reason, "in use by "+tt.first+"-1") {
				t.Errorf("missed because %s", e.Reason)
			}
		}
	}
}

// The run ends while several faults are in force: the latest is healed first.
func TestTheEndOfTheRunHealsTheLatestFirst(t *testing.T) {
	played, log := &tape{}, newLog(t)
	ctx, cancel := context.WithCancel(t.Context())
	faults := []scenario.Fault{{Kind: "leader-slow-disk"}, {Kind: "all-cut"}, {Kind: "node:2-pause"}, {Kind: "node:3-kill"}}
	var ids, order []string
	for i := range faults {
		faults[i].At, faults[i].For = scenario.Duration(i)*ms, 30000*ms
		ids = append(ids, ID(i, faults[i]))
		order = append([]string{ids[i]}, order...)
	}
	// Each waits for the one before, whatever the load of the machine.
	played.meddle = func(call string) error {
		for i := 1; i < len(ids); i++ {
			if strings.HasPrefix(call, "begin "+ids[i]+":") {
				await(t, log, ids[i-1]+" effective")
			}
		}
		return nil
	}
	go func() {
		await(t, log, ids[len(ids)-1]+" effective")
		cancel()
	}()
	events, _ := runWith(t, ctx, Schedule{
		Faults: faults, Servers: fakeServers{tape: played, n: 3}, Wires: fakeWires{tape: played}, Log: log, Journal: fakeJournal{played},
	}, time.Minute)
	var healed []string
	for _, e := range events {
		if e.Event == "healed" {
			healed = append(healed, e.ID)
		}
	}
	if !slices.Equal(healed, order) || len(healed) != len(faults) {
		t.Errorf("healed %v, want %v", healed, order)
	}
	if len(played.played("end ")) != len(faults) {
		t.Errorf("the journal does not have every end: %v", played.played("end "))
	}
}
