package chaos

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
)

// later is a grant that comes after everything.
var later = Holding{Client: 99, Key: 4, Since: math.MaxInt64}

// longAgo is a hold that is as old as the machine.
func longAgo(client uint32) Holding {
	return Holding{Client: client, Key: 4, Attempt: history.Attempt{byte(client)}}
}

// clientRun runs one fault of a client's wire or clock.
func clientRun(t *testing.T, s Schedule, f scenario.Fault, effects ...faultnet.Effect) (*tape, []scenario.FaultEvent) {
	t.Helper()
	played := &tape{}
	s.Faults, s.Wires, s.Journal = []scenario.Fault{f}, fakeWires{tape: played, effects: &effects}, fakeJournal{played}
	events, _ := runWith(t, t.Context(), s, time.Minute)
	return played, events
}

func TestFaultsOfAClientsWireAndClock(t *testing.T) {
	for kind, want := range map[string]string{
		"holder-cut": "apply holder-cut-1 [2] [], lift holder-cut-1", "holder-cut-in": "apply holder-cut-in-1 [2] [], lift holder-cut-in-1",
		"holder-cut-out": "apply holder-cut-out-1 [2] [], lift holder-cut-out-1", "holder-delay": "apply holder-delay-1 [2] [], lift holder-delay-1",
		"holder-stall": "apply holder-stall-1 [2] [], lift holder-stall-1", "holder-refuse": "apply holder-refuse-1 [2] [], lift holder-refuse-1",
		"holder-throttle": "apply holder-throttle-1 [2] [], lift holder-throttle-1", "holder-clock": "skew 2 -7ms, skew 2 0s",
	} {
		g := &fakeGate{comes: 2}
		played, events := clientRun(t, Schedule{Gate: g}, scenario.Fault{Kind: kind, For: 5 * ms, By: -7 * ms}, faultnet.Effect{HeldBytes: 12})
		if got := strings.Join(played.played("apply", "lift", "skew"), ", "); got != want {
			t.Errorf("%s: did %s, want %s", kind, got, want)
		}
		if !slices.Equal(names(events), lasting) || g.opened != 1 {
			t.Errorf("%s: events %v, the gate was opened %d times", kind, names(events), g.opened)
			continue
		}
		if e := events[1]; e.Client == nil || *e.Client != 2 || *e.Key != 4 || e.Attempt == "" || e.PID != 4711 || !strings.Contains(e.How, "; the client stood at the step held") {
			t.Errorf("%s: the event does not name its target: %+v", kind, e)
		}
		if e := events[4]; kind != "holder-clock" && (e.Effect == nil || e.Effect.HeldBytes != 12) {
			t.Errorf("%s: the heal does not report the effect: %+v", kind, e)
		}
	}
}

func kindOf(t *testing.T, name string) scenario.FaultKind {
	t.Helper()
	k, ok := ParseKind(name)
	if !ok {
		t.Fatalf("no fault %q", name)
	}
	return k
}

// Every action has its own rule.
func TestRules(t *testing.T) {
	for action, want := range map[string]faultnet.Rule{
		"cut": {CutIn: true, CutOut: true}, "cut-in": {CutIn: true}, "cut-out": {CutOut: true}, "stall": {Stall: true},
		"refuse": {Refuse: true}, "reset": {Reset: true}, "reply-lost": {LoseReply: true}, "request-lost": {LoseRequest: true},
		"delay": {Delay: time.Second}, "throttle": {Rate: 9},
	} {
		f := &fault{Fault: scenario.Fault{By: 1000 * ms, Rate: 9}, kind: kindOf(t, "holder-"+action), engine: &engine{}}
		if got := f.rule(); got != want {
			t.Errorf("%s: %+v, want %+v", action, got, want)
		}
	}
	f := &fault{Fault: scenario.Fault{By: ms, Jitter: ms}, kind: kindOf(t, "holder-delay"), engine: &engine{}}
	if r := f.rule(); r.Jitter != time.Millisecond || r.Seed == 0 {
		t.Errorf("jitter: %+v", r)
	}
}

func TestResetNeedsAConnection(t *testing.T) {
	for broken, want := range map[int64][]string{0: miss, 3: instant} {
		played, events := clientRun(t, Schedule{Gate: &fakeGate{}}, scenario.Fault{Kind: "holder-reset"}, faultnet.Effect{Broken: broken})
		if !slices.Equal(names(events), want) || len(played.played("lift")) != 1 {
			t.Errorf("%d broken: events %+v, did %v", broken, events, played.played(""))
		}
	}
}

// lost are the faults that swallow one message.
var lost = []string{"holder-reply-lost", "holder-request-lost"}

// The first rule swallows nothing, for the client's request came between; the
// second does.
func TestReplyLostTriesUntilAReplyIsLost(t *testing.T) {
	g := &fakeGate{}
	for _, kind := range lost {
		*g = fakeGate{comes: 1}
		played, events := clientRun(t, Schedule{Gate: g}, scenario.Fault{Kind: kind, Step: "releasing"}, faultnet.Effect{}, faultnet.Effect{LostBytes: 5, Broken: 1})
		if got := played.played("apply", "lift"); len(got) != 4 {
			t.Errorf("%s: did %v", kind, got)
		}
		if !slices.Equal(names(events), instant) || events[2].Effect == nil || events[2].Effect.LostBytes != 5 || g.opened != 1 {
			t.Errorf("%s: events %+v, the gate was opened %d times", kind, events, g.opened)
		}
	}
}

func TestReplyLostMissesWithoutAReply(t *testing.T) {
	for _, kind := range lost {
		played, events := clientRun(t, Schedule{Gate: &fakeGate{}}, scenario.Fault{Kind: kind, For: 20 * ms})
		if !slices.Equal(names(events), miss) || len(played.played("apply")) != len(played.played("lift")) {
			t.Errorf("%s: events %+v, did %v", kind, events, played.played(""))
		}
	}
}

// If no client can be stopped in the critical section, or a hold is long anyway,
// the fault does not use the gate, and checks before and after.
func TestHolderWireFaultsBesideTheGate(t *testing.T) {
	noHeld := &fakeGate{comes: -1, step: "another"}
	for name, gate := range map[string]*fakeGate{"no such place": noHeld, "long hold": {comes: -1}, "no gate": nil} {
		clients := fakeClients{proc: idleProcess{}, holders: func() []Holding { return []Holding{longAgo(3), later} }}
		looks := 0
		clients.holds = func(Holding) bool { looks++; return looks != 2 } // it lets go under the first injection
		s := Schedule{Clients: clients, Seed: 3}
		if gate != nil {
			s.Gate = gate
		}
		played, events := clientRun(t, s, scenario.Fault{Kind: "holder-cut", For: 5 * ms})
		if got := played.played("apply", "lift"); len(got) != 4 || !slices.Equal(names(events), lasting) {
			t.Errorf("%s: did %v, events %v", name, got, names(events))
		}
		if len(played.played("begin")) != 2 || len(played.played("end")) != 2 {
			t.Errorf("%s: the journal has %v", name, played.played("begin", "end"))
		}
	}
}

func TestWhoIsHit(t *testing.T) {
	clients := fakeClients{
		proc:    idleProcess{},
		holders: func() []Holding { return []Holding{longAgo(3), later} },
		waiters: []Holding{longAgo(5), longAgo(6)}, idle: []uint32{8},
	}
	hit := func(kind string, seed uint64) *scenario.FaultEvent {
		_, events := clientRun(t, Schedule{Clients: clients, Seed: seed}, scenario.Fault{Kind: kind})
		return &events[1]
	}
	if e := hit("next-waiter-stall", 1); *e.Client != 5 || *e.Key != 4 {
		t.Errorf("next-waiter hit %+v", e)
	}
	seen := map[uint32]bool{}
	for seed := range uint64(40) {
		e, again := hit("random-nonholder-stall", seed+1), hit("random-nonholder-stall", seed+1)
		if seen[*e.Client] = true; *e.Client != *again.Client {
			t.Fatalf("the same seed hit %d and %d", *e.Client, *again.Client)
		}
		if *e.Client == 8 && (e.Key != nil || e.Attempt != "") {
			t.Errorf("an idle client has no key: %+v", e)
		}
	}
	if len(seen) != 3 || !seen[5] || !seen[6] || !seen[8] {
		t.Errorf("random-nonholder hit %v", seen)
	}
}

// A fault after a share of the TTL waits for a hold that comes to that age, and
// passes over those that are older.
func TestAfterAShareOfTheLease(t *testing.T) {
	log := newLog(t)
	now := log.clock.Now()
	young := Holding{Client: 7, Key: 4, Attempt: history.Attempt{7}, Since: now}
	clients := fakeClients{proc: idleProcess{}, holders: func() []Holding { return []Holding{longAgo(3), young} }}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { await(t, log, "holder-cut-1 healed"); cancel() }()
	events, _ := runWith(t, ctx, Schedule{
		Faults: []scenario.Fault{{Kind: "holder-cut", After: 0.5}}, Clients: clients, Log: log, TTL: 2 * time.Second, Wires: fakeWires{tape: &tape{}},
	}, time.Minute)
	if len(events) < 2 || events[1].Client == nil || *events[1].Client != 7 {
		t.Fatalf("events %+v", events)
	}
	if age := time.Duration(events[1].AtNS - now); age < time.Second {
		t.Errorf("injected at the age of %v, want 1s", age)
	}
}

// Two faults that need the gate have it one after the other, in their order.
func TestTheGateIsForOneFaultAtATime(t *testing.T) {
	log := newLog(t)
	g := &strictGate{t: t, come: "held"}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		await(t, log, "holder-cut-1 healed", "leader-flush-2 effective", "step-stall-3 healed")
		cancel()
	}()
	events, _ := runWith(t, ctx, Schedule{
		Faults: []scenario.Fault{
			{Kind: "holder-cut", Step: "held", For: 20 * ms}, {Kind: "leader-flush", Step: "held"}, {Kind: "step-stall", Step: "held", For: ms},
		},
		Gate: g, Log: log, Wires: fakeWires{tape: &tape{}}, Servers: fakeServers{tape: &tape{}, n: 1},
	}, time.Minute)
	slices.SortStableFunc(events, func(a, b scenario.FaultEvent) int { return cmp.Compare(a.AtNS, b.AtNS) })
	var order []string
	for _, e := range events {
		if e.Event == "injected" {
			order = append(order, e.ID)
			if e.Client == nil || *e.Client != 6 {
				t.Errorf("%s does not name who stood at the gate: %+v", e.ID, e)
			}
		}
	}
	if !equal(order, "holder-cut-1", "leader-flush-2", "step-stall-3") || g.state != free {
		t.Errorf("order %v, the gate is left in state %d", order, g.state)
	}
}

// A fault that goes beside the gate does not hand on what another still has.
func TestTheGateIsNotHandedOnTooEarly(t *testing.T) {
	log := newLog(t)
	g := &strictGate{t: t, come: "held"}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { await(t, log, "holder-cut-2 healed"); cancel() }()
	long := func() []Holding { return []Holding{longAgo(3)} }
	events, _ := runWith(t, ctx, Schedule{
		Faults:  []scenario.Fault{{Kind: "step-stall", Step: "between"}, {Kind: "holder-cut"}, {Kind: "step-stall", Step: "held"}},
		Clients: fakeClients{proc: idleProcess{}, holders: long}, Gate: g, Log: log, Wires: fakeWires{tape: &tape{}},
	}, time.Minute)
	for _, e := range events {
		if e.Event == "injected" && e.ID != "holder-cut-2" {
			t.Errorf("%s came to the gate", e.ID)
		}
	}
	if g.state != free {
		t.Errorf("the gate is left in state %d", g.state)
	}
}

// Without a way to clients or servers their faults are missed with the reason.
func TestFaultsWithoutAWorld(t *testing.T) {
	for kind, want := range map[string]string{
		"holder-cut": "connections and clocks", "leader-kill": "needs servers", "step-cut": "which step", "gremlins": "no fault",
		"leader-reset": "clients' connections",
	} {
		s := Schedule{Faults: []scenario.Fault{{Kind: kind}}}
		if kind == "step-cut" {
			s.Wires = fakeWires{tape: &tape{}}
		}
		if kind == "leader-reset" {
			s.Servers = fakeServers{tape: &tape{}, n: 1}
		}
		events, _ := runWith(t, t.Context(), s, time.Minute)
		if !equal(names(events), "armed", "missed") || !strings.Contains(events[1].Reason, want) {
			t.Errorf("%s: %+v", kind, events)
		}
	}
}

// A failed heal is an error that names what is left, and is not recorded as
// healed.
func TestAHealThatFails(t *testing.T) {
	played := &tape{meddle: func(call string) error {
		if strings.HasPrefix(call, "lift") {
			return errors.New("no answer")
		}
		return nil
	}}
	events, _, err := tryRun(t, t.Context(), Schedule{
		Faults: []scenario.Fault{{Kind: "holder-cut"}}, Gate: &fakeGate{}, Wires: fakeWires{tape: played}, Journal: fakeJournal{played},
	}, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "heal holder-cut-1") || !strings.Contains(err.Error(), lift) {
		t.Errorf("error %v", err)
	}
	if got := names(events); slices.Contains(got, "healed") || !slices.Contains(got, "note") || len(played.played("end")) > 0 || len(played.played("lift")) != 1 {
		t.Errorf("events %v, did %v", got, played.played(""))
	}
}

// The rule of a reset or of a lost reply is lifted before the fault's heal. The
// end of the run must not keep it in force.
func TestTheRunEndsBeforeARuleIsLifted(t *testing.T) {
	for _, kind := range []string{"holder-reset", "holder-reply-lost"} {
		ctx, cancel := context.WithCancel(t.Context())
		played := &tape{meddle: func(call string) error {
			if strings.HasPrefix(call, "apply") {
				cancel()
			}
			return nil
		}}
		_, _, err := tryRun(t, ctx, Schedule{
			Faults: []scenario.Fault{{Kind: kind}}, Gate: &fakeGate{}, Wires: fakeWires{tape: played}, Journal: fakeJournal{played},
		}, time.Minute)
		if err != nil || len(played.played("lift")) != 1 || len(played.played("end")) != 1 {
			t.Errorf("%s: did %v, error %v", kind, played.played(""), err)
		}
	}
}

// A step back that took all its time leaves the next one as much.
func TestEveryStepBackHasItsOwnTime(t *testing.T) {
	f := &fault{engine: &engine{Schedule: Schedule{Clock: history.NewClock()}}}
	in := &injection{fault: f}
	f.undo.push(in)
	var spent context.Context
	nothing := func() error { return nil }
	_ = in.do("second", func(ctx context.Context) error {
		if ctx.Err() != nil || spent.Err() == nil {
			t.Errorf("the second step back has the context of the first: %v, %v", ctx.Err(), spent.Err())
		}
		return nil
	}, nothing)
	_ = in.do("first", func(ctx context.Context) error { spent = ctx; return nil }, nothing)
	if err := in.close(t.Context()); err != nil || spent == nil {
		t.Error(err)
	}
}
