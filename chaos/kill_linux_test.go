package chaos

import (
	"context"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
)

// dead reports whether the child has ended.
func dead(c *supervise.Process) bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

func TestHolderKillMakesSureOfItsTarget(t *testing.T) {
	c := startChild(t)
	looks := 0
	clients := fakeClients{
		proc: c,
		holders: func() []Holding {
			return []Holding{{Client: 3, Key: 1, Attempt: history.Attempt{9}, Since: math.MaxInt64}}
		},
		holds: func(Holding) bool {
			if still, err := c.Stopped(); err != nil || !still {
				t.Errorf("the second look came before the process stood still (%v)", err)
			}
			looks++
			return looks == 2
		},
	}
	events, kills := runWith(t, t.Context(), Schedule{Faults: []scenario.Fault{{Kind: scenario.HolderKill}}, Clients: clients}, time.Minute)
	if got := names(events); !equal(got, "armed", "injected", "effective", "first_grant") || looks != 2 {
		t.Fatalf("events %v after %d looks", got, looks)
	}
	if !dead(c) || !slices.Equal(kills, []Kill{{Fault: "holder-kill-1", PID: c.PID()}}) {
		t.Errorf("dead is %v, kills %+v", dead(c), kills)
	}
	e := events[1]
	if e.Client == nil || *e.Client != 3 || e.Key == nil || *e.Key != 1 || e.Attempt != (history.Attempt{9}).String() || e.PID != c.PID() || !strings.HasPrefix(e.How, "SIGKILL; ") {
		t.Errorf("the event does not name its target: %+v", e)
	}
}

// If a holder's process ends between the look and the signal, as that of another
// fault's victim does, the next holder is hit.
func TestAHolderThatDiedSinceTheLook(t *testing.T) {
	gone, c := startChild(t), startChild(t)
	if err := gone.Kill(); err != nil {
		t.Fatal(err)
	}
	clients := &killedSince{fakeClients: fakeClients{proc: c}, gone: gone}
	events, kills := runWith(t, t.Context(), Schedule{Faults: []scenario.Fault{{Kind: scenario.HolderKill}}, Clients: clients}, time.Minute)
	if got := names(events); !equal(got, "armed", "injected", "effective", "first_grant") {
		t.Fatalf("events %v", got)
	}
	if e := events[1]; e.PID != c.PID() || !slices.Equal(kills, []Kill{{Fault: "holder-kill-1", PID: c.PID()}}) {
		t.Errorf("hit %+v, kills %+v", e, kills)
	}
}

// killedSince has one holder, whose process has ended when it is signalled first.
type killedSince struct {
	fakeClients
	gone Process
	met  bool // the process that has ended
}

func (k *killedSince) Process(client uint32) (Process, []uint32, error) {
	if !k.met {
		return firstSignal{k.gone, &k.met}, []uint32{client}, nil
	}
	return k.fakeClients.Process(client)
}

// firstSignal notes that its process was signalled.
type firstSignal struct {
	Process
	met *bool
}

func (p firstSignal) Signal(sig os.Signal) error {
	*p.met = true
	return p.Process.Signal(sig)
}

// A kill that would hit more than the one client is refused, unless all of them
// are holders.
func TestHolderKillOfAWholeProcess(t *testing.T) {
	for _, takeover := range []bool{false, true} {
		c := startChild(t)
		clients := fakeClients{
			proc: c, hosted: []uint32{7},
			holders: func() []Holding { return []Holding{{Client: 3, Since: math.MaxInt64}} }, holds: func(Holding) bool { return true },
		}
		events, kills := runWith(t, t.Context(), Schedule{Faults: []scenario.Fault{{Kind: scenario.HolderKill}}, Clients: clients, Takeover: takeover}, time.Minute)
		last := events[len(events)-1]
		if dead(c) != takeover || (len(kills) == 1) != takeover || (last.Event == "missed" && strings.Contains(last.Reason, "hosts 2 clients")) == takeover {
			t.Errorf("takeover %v: dead %v, kills %v, last event %+v", takeover, dead(c), kills, last)
		}
	}
}

func TestHolderKillMissesWithoutHolder(t *testing.T) {
	c := startChild(t)
	clients := fakeClients{proc: c, holders: func() []Holding { return nil }}
	events := runSchedule(t, t.Context(), scenario.Fault{Kind: scenario.HolderKill}, 10*time.Millisecond, clients)
	if got := names(events); !equal(got, "armed", "missed") || dead(c) {
		t.Errorf("events %+v, dead is %v", events, dead(c))
	}
}

func TestStepPause(t *testing.T) {
	c := startChild(t)
	g := &fakeGate{comes: 3, open: func() {
		if still, err := c.Stopped(); err != nil || still {
			t.Errorf("the gate was opened before the process was continued (%v)", err)
		}
	}}
	f := scenario.Fault{Kind: "step-pause", Step: "between", For: scenario.Duration(20 * time.Millisecond)}
	events, kills := runWith(t, t.Context(), Schedule{Faults: []scenario.Fault{f}, Clients: fakeClients{proc: c}, Gate: g}, time.Minute)
	if got := names(events); !equal(got, "armed", "injected", "heal_started", "healed", "first_grant") || len(kills) > 0 || dead(c) {
		t.Fatalf("events %v, kills %v", got, kills)
	}
	for _, e := range events {
		if e.Step != "between" || e.Event != "first_grant" && (e.Event != "armed") != (e.Client != nil && *e.Client == 2 && *e.Key == 4 && e.Attempt != "" && e.PID == c.PID()) {
			t.Errorf("an event without its step or its target: %+v", e)
		}
	}
	if d := events[2].AtNS - events[1].AtNS; d < int64(20*time.Millisecond) {
		t.Errorf("paused for %v, want at least 20ms", time.Duration(d))
	}
	if g.opened != 1 {
		t.Errorf("the gate was opened %d times", g.opened)
	}
}

func TestStepKill(t *testing.T) {
	c := startChild(t)
	g := &fakeGate{comes: 1}
	f := scenario.Fault{Kind: "step-kill", Step: "between"}
	events, kills := runWith(t, t.Context(), Schedule{Faults: []scenario.Fault{f}, Clients: fakeClients{proc: c}, Gate: g}, time.Minute)
	if got := names(events); !equal(got, "armed", "injected", "effective", "first_grant") || !dead(c) || len(kills) != 1 {
		t.Fatalf("events %v, dead is %v, kills %v", got, dead(c), kills)
	}
	if g.opened != 1 {
		t.Errorf("the gate was opened %d times", g.opened)
	}
}

// A step's fault that cannot hit is a miss with its reason, and leaves no client
// at the gate.
func TestStepFaultsThatMiss(t *testing.T) {
	over, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond) // while the fault waits, or before
	defer cancel()
	for name, tt := range map[string]struct {
		step   string
		ctx    context.Context
		gate   fakeGate
		hosted []uint32
		want   string
	}{
		"no client comes": {"between", t.Context(), fakeGate{comes: -1}, nil, "no client came"},
		"no such step":    {"behind", t.Context(), fakeGate{}, nil, "no such step"},
		"vanished":        {"between", t.Context(), fakeGate{comes: -1, lost: true}, nil, "and vanished"},
		"company":         {"between", t.Context(), fakeGate{}, []uint32{8}, "hosts 2 clients"},
		"the end":         {"between", over, fakeGate{comes: -1}, nil, "the run ended before"},
	} {
		t.Run(name, func(t *testing.T) {
			window := 30 * time.Millisecond
			if tt.ctx == over {
				window = time.Hour
			}
			f := scenario.Fault{Kind: "step-pause", Step: tt.step, For: scenario.Duration(10 * time.Millisecond)}
			c := startChild(t)
			events, kills := runWith(t, tt.ctx, Schedule{Faults: []scenario.Fault{f}, Clients: fakeClients{proc: c, hosted: tt.hosted}, Gate: &tt.gate}, window)
			if got := names(events); !equal(got, "armed", "missed") || !strings.Contains(events[1].Reason, tt.want) || len(kills) > 0 {
				t.Errorf("events %+v, kills %v", events, kills)
			}
			if still, err := c.Stopped(); err != nil || still {
				t.Errorf("the process is stopped (%v)", err)
			}
		})
	}
}

// A client that comes at the moment at which the fault gives up is not left
// standing there: the fault takes it.
func TestStepFaultTakesWhoComesAtTheLastMoment(t *testing.T) {
	c := startChild(t)
	g := &fakeGate{comes: -1, late: true}
	f := scenario.Fault{Kind: "step-kill", Step: "between"}
	events, _ := runWith(t, t.Context(), Schedule{Faults: []scenario.Fault{f}, Clients: fakeClients{proc: c}, Gate: g}, 5*time.Millisecond)
	if got := names(events); !equal(got, "armed", "injected", "effective") || !dead(c) {
		t.Errorf("events %v, dead is %v", got, dead(c))
	}
}
