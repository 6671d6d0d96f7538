package chaos

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
)

// The clock of a client that has ended is free.
func TestTheClockOfADeadClient(t *testing.T) {
	c, played := startChild(t), &tape{}
	played.meddle = func(call string) error {
		if strings.HasSuffix(call, " 0s") {
			_ = c.Kill()
			return errors.New("no answer")
		}
		return nil
	}
	events, _ := runWith(t, t.Context(), Schedule{
		Faults: []scenario.Fault{{Kind: "holder-clock", By: ms}}, Clients: fakeClients{proc: c}, Wires: fakeWires{tape: played},
	}, time.Minute)
	if got := names(events); !equal(got, lasting...) {
		t.Errorf("events %v", got)
	}
}

// A client is killed while it is cut off, and the connection is restored later.
func TestCutKill(t *testing.T) {
	c, played := startChild(t), &tape{}
	network := fakeWires{tape: played, applied: func(faultnet.Rule) {
		if still, err := c.Stopped(); err != nil || !still {
			t.Errorf("the cut came while the client could act (%v)", err)
		}
		if dead(c) {
			t.Error("the client was dead before the cut")
		}
	}}
	played.meddle = func(call string) error {
		if strings.HasPrefix(call, "lift") && !dead(c) {
			t.Error("the wire was mended while the client lived")
		}
		return nil
	}
	events, kills := runWith(t, t.Context(), Schedule{
		Faults:  []scenario.Fault{{Kind: "holder-cut-kill", For: 20 * ms}},
		Clients: fakeClients{proc: c, holders: func() []Holding { return []Holding{{Client: 3, Key: 4, Since: math.MaxInt64}} }}, Wires: network,
	}, time.Minute)
	if got := names(events); !equal(got, lasting...) || len(kills) != 1 || kills[0].PID != c.PID() {
		t.Errorf("events %v, kills %v", got, kills)
	}
	if how := events[1].How; !strings.HasPrefix(how, "SIGKILL behind a cut: dialer; ") {
		t.Errorf("how: %s", how)
	}
}

func TestStarve(t *testing.T) {
	c, played := startChild(t), &tape{}
	events, _ := runWith(t, t.Context(), Schedule{
		Faults: []scenario.Fault{{Kind: "holder-starve", For: 200 * ms}}, Clients: fakeClients{proc: taped{c, played}}, Journal: fakeJournal{played},
	}, time.Minute)
	if got := names(events); !equal(got, lasting...) {
		t.Errorf("events %v", got)
	}
	stops, goes := played.played("signal "+syscall.SIGSTOP.String()), played.played("signal "+syscall.SIGCONT.String())
	if len(stops) < 2 || len(goes) < len(stops) {
		t.Errorf("%d stops and %d continuations", len(stops), len(goes))
	}
	if begun := played.played("begin"); len(begun) != 1 || !strings.HasSuffix(begun[0], "stops 1") {
		t.Errorf("the journal has %q", begun)
	}
	if still, err := c.Stopped(); err != nil || still {
		t.Errorf("the process is stopped (%v)", err)
	}
}

// lookedAt counts how often the faults on holders and those on waiters have
// looked for a target, which is always client 3.
type lookedAt struct {
	fakeClients
	holders, waiters *atomic.Int64
}

func (l lookedAt) Holders() []Holding {
	l.holders.Add(1)
	return []Holding{longAgo(3)}
}

func (l lookedAt) Waiters() []Holding {
	l.waiters.Add(1)
	return []Holding{longAgo(3)}
}

// Of two faults that would undo each other the first has the client, and the
// other one looks for a target until the run ends, and names the first as the
// cause of its miss.
func TestConflictingFaultsOnOneClient(t *testing.T) {
	for _, pair := range [][2]string{
		{"holder-pause", "next-waiter-starve"},
		{"holder-starve", "next-waiter-cut"},
		{"holder-cut", "next-waiter-pause"},
	} {
		log := newLog(t)
		ctx, cancel := context.WithCancel(t.Context())
		clients := lookedAt{fakeClients{proc: startChild(t)}, &atomic.Int64{}, &atomic.Int64{}}
		var first string
		var ready sync.WaitGroup
		ready.Go(func() {
			defer cancel()
			for first == "" && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
				for _, e := range readLog(t, log) {
					if e.Event == "injected" {
						first = e.ID
					}
				}
			}
			// Two more looks of the other one: the second begins after the first of
			// them has met the claim.
			looks := clients.waiters
			if strings.HasPrefix(first, "next-waiter") {
				looks = clients.holders
			}
			for from := looks.Load(); looks.Load() < from+2 && t.Context().Err() == nil; {
				time.Sleep(time.Millisecond)
			}
		})
		events, _ := runWith(t, ctx, Schedule{
			Faults:  []scenario.Fault{{Kind: pair[0], For: 30000 * ms}, {Kind: pair[1], For: 30000 * ms}},
			Clients: clients, Wires: fakeWires{tape: &tape{}}, Log: log,
		}, time.Minute)
		ready.Wait()
		misses := 0
		for _, e := range events {
			if e.Event != "missed" {
				continue
			}
			if misses++; !strings.Contains(e.Reason, "is in use by "+first) {
				t.Errorf("%v: %s missed because %s", pair, e.ID, e.Reason)
			}
		}
		if misses != 1 {
			t.Errorf("%v: events %v", pair, names(events))
		}
	}
}

// Several rules of the wire may apply to one client.
func TestRulesAddUp(t *testing.T) {
	played := &tape{}
	log := newLog(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { await(t, log, "holder-cut-1 effective", "holder-delay-2 effective"); cancel() }()
	events, _ := runWith(t, ctx, Schedule{
		Faults:  []scenario.Fault{{Kind: "holder-cut", For: 30000 * ms}, {Kind: "holder-delay", For: 30000 * ms}},
		Clients: fakeClients{proc: idleProcess{}}, Wires: fakeWires{tape: played}, Log: log,
	}, time.Minute)
	if got := names(events); slices.Contains(got, "missed") || len(played.played("lift")) != 2 {
		t.Errorf("events %v, did %v", got, played.played(""))
	}
}

// What cannot be cut is not killed.
func TestCutKillWithoutACut(t *testing.T) {
	c := startChild(t)
	played := &tape{meddle: func(call string) error {
		if strings.HasPrefix(call, "apply") {
			return errors.New("no such wire")
		}
		return nil
	}}
	events, kills := runWith(t, t.Context(), Schedule{
		Faults: []scenario.Fault{{Kind: "holder-cut-kill"}}, Clients: fakeClients{proc: c}, Wires: fakeWires{tape: played},
	}, time.Minute)
	if got := names(events); !equal(got, miss...) || !strings.Contains(events[1].Reason, "no such wire") || len(kills) > 0 || dead(c) {
		t.Errorf("events %+v, kills %v, dead %v", events, kills, dead(c))
	}
	if still, err := c.Stopped(); err != nil || still {
		t.Errorf("the process is stopped (%v)", err)
	}
	if got := played.played("lift"); len(got) != 1 {
		t.Errorf("did %v", played.played(""))
	}
}

// An injection that cannot be recorded is undone, and the run gets the error.
func TestALogThatCannotBeWritten(t *testing.T) {
	log, played := newLog(t), &tape{}
	network := fakeWires{tape: played, applied: func(faultnet.Rule) {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}}
	now := log.clock.Now()
	_, err := Schedule{
		Faults: []scenario.Fault{{Kind: "holder-cut", For: 30000 * ms}}, Start: now, End: now + int64(time.Minute),
		Clock: log.clock, Log: log, Clients: fakeClients{proc: idleProcess{}}, Wires: network,
	}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "fault log") {
		t.Errorf("error %v", err)
	}
	if got := played.played(""); !equal(got, "apply holder-cut-1 [99] []", "lift holder-cut-1") {
		t.Errorf("did %v", got)
	}
}
