package chaos

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
)

// taped is a real process whose signals are on the tape.
type taped struct {
	*supervise.Process
	*tape
}

func (p taped) Signal(sig os.Signal) error {
	if err := p.note("signal %v", sig); err != nil {
		return err
	}
	return p.Process.Signal(sig)
}

// twoWay returns the object of a call, and whether the call is an undo.
func twoWay(call string) (what string, undo, ok bool) {
	words := strings.Fields(call)
	at := func(i int) string { return words[min(i, len(words)-1)] }
	switch words[0] {
	case "kill", "restart":
		return "process of " + at(1), words[0] == "restart", true
	case "pause", "resume":
		return "run of " + at(1), words[0] == "resume", true
	case "links", "join":
		return "links by " + at(1), words[0] == "join", true
	case "apply", "lift":
		return "wire by " + at(1), words[0] == "lift", true
	case "slow", "fast":
		return "disk of " + at(1), words[0] == "fast", true
	case "fill", "drain":
		return "room of " + at(1), words[0] == "drain", true
	case "clock", "skew":
		return words[0] + " of " + at(1), at(2) == "0s", true
	case "signal":
		return "client", at(1) == "continued", true
	}
	return "", false, false
}

// mischief makes calls fail, panic, and end the run, by a seed.
type mischief struct {
	mu   sync.Mutex
	rng  *rand.Rand
	stop context.CancelFunc
	odds int // per cent
}

func (m *mischief) meddle(call string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if strings.HasPrefix(call, "signal") || m.rng.IntN(100) >= m.odds {
		return nil
	}
	switch m.rng.IntN(4) {
	case 0:
		panic("mischief: " + call)
	case 1:
		m.stop()
		return nil
	}
	return errors.New("mischief: " + call)
}

func (m *mischief) chance(percent int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rng.IntN(100) < percent
}

// After any failure, panic or early end, each step is undone once, the last of
// each fault first; a miss was never injected; and the gate is free.
func TestWhateverHappensIsUndone(t *testing.T) {
	kinds := []string{
		"holder-pause", "holder-starve", "holder-cut", "holder-clock", "holder-reply-lost", "holder-request-lost", "holder-reset", "next-waiter-pause", "random-nonholder-delay", "step-pause",
		"leader-kill", "leader-restart", "leader-cut", "leader-clock", "leader-move", "leader-serving-holder-slow-disk", "follower-pause", "minority-kill",
		"majority-pause", "all-cut", "all-kill", "each-restart", "each-pause", "node:2-evict", "node:1-full", "node:3-flush", "node:1-cut-peers", "leader-close", "all-refuse",
	}
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			var faults []scenario.Fault
			for range 1 + rng.IntN(6) {
				f := scenario.Fault{Kind: kinds[rng.IntN(len(kinds))], At: scenario.Duration(rng.IntN(20)) * ms, For: scenario.Duration(1+rng.IntN(8)) * ms, By: ms}
				if strings.HasPrefix(f.Kind, "step") || rng.IntN(4) == 0 {
					f.Step = "held"
				}
				faults = append(faults, f)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m := &mischief{rng: rand.New(rand.NewPCG(seed, 2)), stop: cancel, odds: []int{0, 3, 15}[seed%3]}
			played := &tape{meddle: m.meddle}
			proc := taped{startChild(t), played}
			gate := &strictGate{t: t, come: "held"}
			events, _, err := tryRun(t, ctx, Schedule{
				Faults: faults, Seed: seed + 1, Keys: []string{"a", "b", "c", "d", "e"}, TTL: time.Millisecond,
				Clients: fakeClients{
					proc: proc, holders: func() []Holding {
						return []Holding{{Client: 6, Key: 4, Attempt: history.Attempt{6}, Since: math.MaxInt64}}
					},
					holds:   func(Holding) bool { return m.chance(70) },
					waiters: []Holding{{Client: 1, Key: 4, Attempt: history.Attempt{1}}}, idle: []uint32{2},
				},
				Gate: gate, Servers: fakeServers{tape: played, n: 3, closed: 1}, Journal: fakeJournal{played},
				Wires: fakeWires{tape: played, peers: []string{"10.0.0.2:1"}, effects: &[]faultnet.Effect{{LostBytes: 1, Broken: 1}}},
			}, 2*time.Second)
			checkUndone(t, played.played(""), seed%3 == 0)
			checkEvents(t, events, faults)
			if seed%3 == 0 && err != nil {
				t.Errorf("without mischief there is an error: %v", err)
			}
			if gate.state != free {
				t.Errorf("the gate is left in state %d", gate.state)
			}
			if still, err := proc.Stopped(); err != nil || still {
				t.Errorf("the client's process is stopped (%v)", err)
			}
		})
	}
}

// A client that stands still cannot lift a rule that another fault put on its
// wire: when the run ends meanwhile it goes on first.
func TestWhoStandsStillGoesOnBeforeItsRulesAreLifted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := startChild(t)
	patience, end := context.WithTimeout(t.Context(), 30*time.Second)
	defer end()
	await := func(stopped bool) error {
		for patience.Err() == nil {
			if still, err := c.Stopped(); err != nil || still == stopped {
				return err
			}
			time.Sleep(time.Millisecond)
		}
		return errors.New("the client does not answer")
	}
	played := &tape{meddle: func(call string) error {
		if !strings.HasPrefix(call, "lift") {
			return nil
		}
		err := await(true)
		cancel()
		return errors.Join(err, await(false))
	}}
	events, _, err := tryRun(t, ctx, Schedule{
		Faults:  []scenario.Fault{{Kind: "next-waiter-pause", For: scenario.Duration(time.Hour)}, {Kind: "node:1-cut-clients", For: ms}},
		Clients: fakeClients{proc: taped{c, played}, waiters: []Holding{{Client: 1, Key: 4, Attempt: history.Attempt{1}}}},
		Servers: fakeServers{tape: played, n: 3}, Wires: fakeWires{tape: played}, Journal: fakeJournal{played},
	}, 2*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(played.played("lift")); n != 1 {
		t.Errorf("lifted %d times: %v, events %v", n, played.played(""), names(events))
	}
}

// checkUndone checks that a tape undoes every call; with peace the journal also
// ends every fault that it began.
func checkUndone(t *testing.T, calls []string, peace bool) {
	t.Helper()
	done := map[string]int{}   // not undone yet
	nested := map[string]int{} // faults that have the wire in hand
	begun := map[string]int{}
	for i, call := range calls {
		if id, is := strings.CutPrefix(call, "begin "); is {
			id, _, _ = strings.Cut(id, ": ")
			begun[id]++
		}
		if id, is := strings.CutPrefix(call, "end "); is {
			begun[id]--
		}
		what, undo, ok := twoWay(call)
		if !ok {
			continue
		}
		// A starved process is stopped and continued in turn, and continued once
		// more by the heal.
		if what == "client" {
			done[what] = 1
			if undo {
				done[what] = 0
			}
			continue
		}
		if undo {
			done[what]--
		} else {
			done[what]++
		}
		if n := done[what]; n < 0 || n > 1 {
			t.Errorf("%s: done %d times and not undone, after call %d of %q", what, n, i, calls)
		}
		if id, is := strings.CutPrefix(what, "wire by "); is {
			nested[id] = done[what]
		}
		if id, is := strings.CutPrefix(what, "links by "); is && undo && nested[id] != 0 {
			t.Errorf("%s: its links were joined before its wires, which were cut last", id)
		}
	}
	for what, n := range done {
		if n != 0 {
			t.Errorf("%s: not undone in %q", what, calls)
		}
	}
	for id, n := range begun {
		if peace && n != 0 {
			t.Errorf("%s: the journal has %d begins more than ends", id, n)
		}
	}
}

// checkEvents makes sure that every fault is armed, and is either missed or
// injected.
func checkEvents(t *testing.T, events []scenario.FaultEvent, faults []scenario.Fault) {
	t.Helper()
	seen := map[string]map[string]int{}
	for _, e := range events {
		if seen[e.ID] == nil {
			seen[e.ID] = map[string]int{}
		}
		seen[e.ID][e.Event]++
	}
	if len(seen) != len(faults) {
		t.Errorf("%d faults have events, want %d", len(seen), len(faults))
	}
	for id, n := range seen {
		if n["armed"] != 1 || n["missed"]+n["injected"] != 1 || n["healed"] > n["injected"] || n["healed"] > n["heal_started"] {
			t.Errorf("%s: events %v", id, n)
		}
	}
}

// The same seed makes the same choices, fault by fault, in any order of the
// goroutines.
func TestTheSeedDecides(t *testing.T) {
	choices := func(seed uint64) string {
		var holders []Holding
		for c := range uint32(16) {
			holders = append(holders, Holding{Client: c, Key: 4, Attempt: history.Attempt{byte(c + 1)}, Since: math.MaxInt64})
		}
		s := Schedule{
			Seed:    seed,
			Clients: fakeClients{proc: idleProcess{}, holders: func() []Holding { return holders }},
			Servers: fakeServers{tape: &tape{}, n: 5}, Wires: fakeWires{tape: &tape{}},
		}
		for range 4 {
			s.Faults = append(s.Faults, scenario.Fault{Kind: "holder-stall"}, scenario.Fault{Kind: "minority-flush"})
		}
		events, _ := runWith(t, t.Context(), s, time.Minute)
		by := map[string]string{}
		for _, e := range events {
			if e.Event == "injected" && e.Client != nil {
				by[e.ID] = fmt.Sprint(*e.Client)
			} else if e.Event == "injected" {
				by[e.ID] = fmt.Sprint(e.Nodes)
			}
		}
		if len(by) != len(s.Faults) {
			t.Fatalf("only %v were injected", by)
		}
		return fmt.Sprint(by)
	}
	if a, b, c := choices(1), choices(1), choices(2); a != b || a == c {
		t.Errorf("seed 1: %s and %s; seed 2: %s", a, b, c)
	}
}
