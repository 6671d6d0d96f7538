package chaos

import (
	"context"
	"math"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
)

// startChild starts a real process that does nothing.
func startChild(t *testing.T) *supervise.Process {
	t.Helper()
	run, err := supervise.Begin(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.End(context.Background()); err != nil {
			t.Error(err)
		}
	})
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	p, err := run.Start(supervise.Command{Name: "sleep", Path: sleep, Args: []string{"60"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestHolderPauseStopsAndContinues(t *testing.T) {
	c := startChild(t)
	var seenStopped atomic.Bool
	clients := fakeClients{
		proc: c,
		holders: func() []Holding {
			return []Holding{{Client: 3, Key: 1, Attempt: history.Attempt{9}, Since: math.MaxInt64}}
		},
		holds: func(Holding) bool {
			still, err := c.Stopped()
			seenStopped.Store(err == nil && still)
			return true
		},
	}
	events := runSchedule(t, t.Context(), scenario.Fault{Kind: "holder-pause", For: scenario.Duration(20 * time.Millisecond)}, time.Minute, clients)
	if got := names(events); !equal(got, "armed", "injected", "heal_started", "healed", "first_grant") {
		t.Fatalf("events %v", got)
	}
	if !seenStopped.Load() {
		t.Error("the second look at the holder came before its process stood still")
	}
	if still, err := c.Stopped(); err != nil || still {
		t.Errorf("after the heal the process is still stopped (%v)", err)
	}
	if d := events[2].AtNS - events[1].AtNS; d < int64(20*time.Millisecond) {
		t.Errorf("paused for %v, want at least 20ms", time.Duration(d))
	}
	if events[1].Client == nil || *events[1].Client != 3 || events[1].PID != c.PID() {
		t.Errorf("injected event does not name its target: %+v", events[1])
	}
}

// The holder released the lock between the look and the stop: it must go on, and
// the fault must try again.
func TestHolderPauseRetriesWhenTheHolderLetGo(t *testing.T) {
	c := startChild(t)
	looks := 0
	clients := fakeClients{
		proc:    c,
		holders: func() []Holding { return []Holding{{Client: 1, Since: math.MaxInt64}} },
		holds:   func(Holding) bool { looks++; return looks == 3 },
	}
	events := runSchedule(t, t.Context(), scenario.Fault{Kind: "holder-pause", For: scenario.Duration(time.Millisecond)}, time.Minute, clients)
	if got := names(events); !equal(got, "armed", "injected", "heal_started", "healed", "first_grant") || looks != 3 {
		t.Fatalf("events %v after %d looks, want an injection at the third", got, looks)
	}
}

// No client ever holds: the fault is missed, never survived.
func TestHolderPauseMissesWithoutHolder(t *testing.T) {
	clients := fakeClients{proc: startChild(t), holders: func() []Holding { return nil }, holds: func(Holding) bool { return false }}
	events := runSchedule(t, t.Context(), scenario.Fault{Kind: "holder-pause", For: scenario.Duration(20 * time.Millisecond)}, 30*time.Millisecond, clients)
	if got := names(events); !equal(got, "armed", "missed") || events[1].Reason == "" {
		t.Fatalf("events %+v, want armed and missed with a reason", events)
	}
}

// The run ends in the middle of the pause: the process goes on at once.
func TestHolderPauseHealsWhenTheRunEnds(t *testing.T) {
	c := startChild(t)
	ctx, cancel := context.WithCancel(t.Context())
	clients := fakeClients{
		proc:    c,
		holders: func() []Holding { return []Holding{{Client: 1, Since: math.MaxInt64}} },
		holds:   func(Holding) bool { cancel(); return true },
	}
	events := runSchedule(t, ctx, scenario.Fault{Kind: "holder-pause", For: scenario.Duration(time.Hour)}, 2*time.Hour, clients)
	if got := names(events); !equal(got, "armed", "injected", "heal_started", "healed") {
		t.Fatalf("events %v", got)
	}
	if still, err := c.Stopped(); err != nil || still {
		t.Errorf("the process is still stopped (%v)", err)
	}
}

func TestEveryFaultOfTheSpecificationIsKnown(t *testing.T) {
	for _, f := range Actions().Faults() {
		if err := Available(f.Name); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	if Available("gremlins") == nil {
		t.Error("an unknown fault is available")
	}
}
