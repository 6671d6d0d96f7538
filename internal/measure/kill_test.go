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

// kill adds the events of a kill of a client's process, and leaves the records
// of all clients in it without their ends.
func (s *story) kill(kind string, client uint32, attempt string, at float64) {
	key := uint32(0)
	f := scenario.Fault{Kind: kind, At: scenario.Duration(at * float64(ms))}
	if kind != scenario.HolderKill {
		f.Step = "between"
	}
	s.in.scenario.Faults = append(s.in.scenario.Faults, f)
	e := scenario.FaultEvent{ID: kind + "-1", Fault: kind, Event: "armed", AtNS: start}
	s.in.events = append(s.in.events, e)
	e.Event, e.AtNS = "injected", start+int64(at*float64(ms))
	e.Client, e.Key, e.PID, e.Attempt, e.How = &client, &key, 4711, s.attempt(attempt).String(), "SIGKILL; holder found in shared memory, try 1"
	s.in.events = append(s.in.events, e)
	streams := s.in.history.Streams
	for i := range streams {
		if streams[i].Worker == streams[client].Worker {
			streams[i].Sealed = false
		}
	}
	s.in.samples.Workers = append(s.in.samples.Workers, scenario.WorkerSample{PID: 4711, Clients: []uint32{client}, Error: "signal: killed"})
}

// killed has a holder that dies at 100 ms, twenty milliseconds after it extended
// its lease. Another client gets its key two seconds later.
func killed(info impls.Info) *story {
	s := newStory(info, 2)
	s.call(0, "a", history.KindAcquire, history.Held, 10, 12).Fence = 1
	s.call(0, "a", history.KindExtend, history.Extended, 80, 81)
	s.hold(1, "b", 20, 2085, 2100)
	s.kill(scenario.HolderKill, 0, "a", 100)
	s.in.scenario.Expect = scenario.Expect{Verdict: scenario.Safe, Promise: scenario.Kept, Liveness: scenario.Live}
	return s
}

func TestKilledHolder(t *testing.T) {
	r := killed(leased()).result()
	if len(r.Faults) != 1 || r.Faults[0].Status != "effective" || r.Faults[0].Mechanism != "SIGKILL" || r.Faults[0].HealedNS != 0 {
		t.Errorf("fault %+v", r.Faults)
	}
	if f := r.Faults[0]; f.FirstGrantNS != 2085*ms || f.LongestWaitNS != 2065*ms || *r.RecoveryNS != 1985*ms {
		t.Errorf("after it: %+v, recovery %d", f, *r.RecoveryNS)
	}
	got := r.Takeover
	if got == nil || got.Holds != 1 || got.Granted != 1 || got.BoundNS != 2*sec || got.UnansweredNS != 0 {
		t.Fatalf("takeover %+v", got)
	}
	if got.FromDeath.Max != 1985*ms || got.Lifetime.Max != 2005*ms || len(got.Each) != 1 || got.Each[0] != (scenario.OneTakeover{FromDeathNS: 1985 * ms, LifetimeNS: 2005 * ms}) {
		t.Errorf("takeover %+v %+v %+v", *got.FromDeath, *got.Lifetime, got.Each)
	}
	// A worker that died of the fault is no surprise.
	if r.AsExpected == nil || !*r.AsExpected || slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "4711") }) {
		t.Errorf("as expected %v, %v, %v", r.AsExpected, r.Surprises, r.Warnings)
	}
	if r.ClientCPU != nil || !strings.Contains(r.Unmeasured["client_cpu_s_per_1000"], "killed") {
		t.Errorf("client CPU %v: %s", r.ClientCPU, r.Unmeasured["client_cpu_s_per_1000"])
	}
	// But one that died of something else is.
	s := killed(leased())
	s.in.samples.Workers = append(s.in.samples.Workers, scenario.WorkerSample{PID: 4712, Clients: []uint32{1}, Error: "signal: killed"})
	if r := s.result(); r.AsExpected != nil || r.Safety.Verdict != scenario.Undecided {
		t.Errorf("a second worker died of nothing known: as expected %v, verdict %s", r.AsExpected, r.Safety.Verdict)
	}
}

// A lock that is kept alive beside the calls shows no lifetime.
func TestLifetimeOfSession(t *testing.T) {
	info := leased()
	info.Bound = impls.BoundSession
	r := killed(info).result()
	if r.Takeover == nil || r.Takeover.FromDeath == nil || r.Takeover.Lifetime != nil || r.Unmeasured["lifetime_ns"] == "" {
		t.Errorf("takeover %+v: %s", r.Takeover, r.Unmeasured["lifetime_ns"])
	}
}

// A recipe without a bound leaves the key taken, and is judged by twice the
// TTL.
func TestKilledHolderOfNoBound(t *testing.T) {
	info := leased()
	info.Bound, info.Takeover, info.Fencing = impls.BoundNone, nil, false
	s := newStory(info, 2)
	s.call(0, "a", history.KindAcquire, history.Held, 10, 12)
	s.call(1, "b", history.KindAcquire, history.Failed, 20, 9990)
	s.kill(scenario.HolderKill, 0, "a", 100)
	s.in.scenario.Expect = scenario.Expect{Liveness: scenario.Stuck}
	r := s.result()
	if r.Safety.Liveness != scenario.Stuck || !strings.Contains(r.Safety.Why["liveness"], "judged by 2 TTLs") {
		t.Errorf("liveness %s: %s", r.Safety.Liveness, r.Safety.Why["liveness"])
	}
	if r.Safety.TakeoverBoundNS != 2*s.in.scenario.TTL.D().Nanoseconds()+takeoverSlack.Nanoseconds() {
		t.Errorf("judged by %v", time.Duration(r.Safety.TakeoverBoundNS))
	}
	if k := r.Takeover; k == nil || k.Holds != 1 || k.Granted != 0 || k.BoundNS != 0 || k.UnansweredNS != 9890*ms || k.FromDeath != nil || r.Unmeasured["from_death_ns"] == "" {
		t.Errorf("takeover %+v", k)
	}
	if r.AsExpected == nil || !*r.AsExpected {
		t.Errorf("as expected %v: %v", r.AsExpected, r.Surprises)
	}
	// A lock that is released in time is live.
	s = newStory(info, 2)
	s.hold(0, "a", 10, 12, 20)
	s.hold(1, "b", 15, 25, 30)
	if r := s.result(); r.Safety.Liveness != scenario.Live {
		t.Errorf("liveness %s: %s", r.Safety.Liveness, r.Safety.Why["liveness"])
	}
}

// All clients of the killed process died with it, and each left a key.
func TestKilledWorker(t *testing.T) {
	s := newStory(leased(), 4)
	s.in.history.Streams[1].Worker = 0
	s.call(0, "a", history.KindAcquire, history.Held, 10, 12).Fence = 1
	second := s.call(1, "b", history.KindAcquire, history.Held, 30, 32)
	second.Key, second.Fence = 1, 1
	s.hold(2, "c", 40, 2010, 2020)
	third := s.call(3, "d", history.KindAcquire, history.Held, 50, 1990)
	third.Key, third.Fence = 1, 2
	s.call(3, "d", history.KindRelease, history.Released, 2000, 2001).Key = 1
	s.kill(scenario.HolderKill, 0, "a", 100)
	r := s.result()
	if k := r.Takeover; k == nil || k.Holds != 2 || k.Granted != 2 || k.FromDeath.Max != 1910*ms || k.Each[1] != (scenario.OneTakeover{Key: 1, FromDeathNS: 1890 * ms, LifetimeNS: 1960 * ms}) {
		t.Errorf("takeover %+v", k)
	}
	if r.Safety.Verdict != scenario.Safe || r.Safety.Liveness != scenario.Live {
		t.Errorf("safety %+v", r.Safety)
	}
}

func TestMissedKill(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(s *story)
		want string
	}{
		{"not yet granted", func(s *story) { s.in.events[1].AtNS = start + 11*ms }, "still at work"},
		{"had let go", func(s *story) { s.call(0, "a", history.KindRelease, history.Released, 90, 91) }, "let go of the lock"},
		{"still at work", func(s *story) { s.call(0, "z", history.KindAcquire, history.Busy, 110, 120) }, "still at work"},
		{"ended well", func(s *story) { s.in.history.Streams[0].Sealed = true }, "did not die"},
		{"no target", func(s *story) { s.in.events[1].Client = nil }, "name its target"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := killed(leased())
			tc.do(s)
			r := s.result()
			if r.Faults[0].Status != "missed" || !strings.Contains(r.Faults[0].Reason, tc.want) || r.AsExpected != nil && *r.AsExpected {
				t.Errorf("fault %+v, surprises %v, want a reason with %q", r.Faults[0], r.Surprises, tc.want)
			}
		})
	}
}

// A client killed in the middle of its acquire left a key that is taken.
func TestStepKill(t *testing.T) {
	build := func() *story {
		s := newStory(leased(), 2)
		s.call(0, "a", history.KindAcquire, history.Open, 10, -1)
		s.call(1, "b", history.KindAcquire, history.Failed, 20, 9990)
		s.kill("step-kill", 0, "a", 15)
		return s
	}
	r := build().result()
	if r.Faults[0].Status != "effective" || r.Faults[0].Step != "between" {
		t.Errorf("fault %+v", r.Faults[0])
	}
	if k := r.Takeover; k == nil || k.Holds != 1 || k.Granted != 0 || k.UnansweredNS != 9975*ms {
		t.Errorf("takeover %+v", k)
	}
	if r.Safety.Liveness != scenario.Stuck {
		t.Errorf("liveness %s: %s", r.Safety.Liveness, r.Safety.Why["liveness"])
	}
	s := build()
	s.in.history.Calls[0].Outcome, s.in.history.Calls[0].Return = history.Busy, start+14*ms
	if r := s.result(); r.Faults[0].Status != "missed" || !strings.Contains(r.Faults[0].Reason, "at the step between") {
		t.Errorf("a call that had returned: %+v", r.Faults[0])
	}
	// A waiter that dies while another holds leaves nothing.
	s = build()
	s.in.history.Calls = s.in.history.Calls[:1]
	s.hold(1, "h", 5, 8, 50)
	s.call(1, "i", history.KindAcquire, history.Held, 60, 70)
	if r := s.result(); r.Takeover != nil || r.Unmeasured["takeover"] == "" {
		t.Errorf("takeover %+v", r.Takeover)
	}
}

// A client that was killed as a waiter left no lock, even if the lock had no
// holder at that moment.
func TestWaiterKill(t *testing.T) {
	s := newStory(leased(), 2)
	s.call(0, "a", history.KindAcquire, history.Open, 10, -1)
	s.hold(1, "b", 1, 2, 50)
	s.hold(1, "c", 59, 70, 80)
	s.kill("next-waiter-kill", 0, "a", 55)
	r := s.result()
	if len(r.Faults) != 1 || r.Faults[0].Status != "effective" {
		t.Errorf("fault %+v", r.Faults)
	}
	if r.Takeover != nil || r.Unmeasured["takeover"] == "" {
		t.Errorf("takeover %+v", r.Takeover)
	}
}

// A client that stood at a step while others worked explains what it did next.
func TestStepPause(t *testing.T) {
	build := func() *story {
		s := newStory(leased(), 2)
		s.in.info.Bound, s.in.info.Fencing = impls.BoundNone, false
		s.in.info.Takeover = nil
		s.call(0, "a", history.KindAcquire, history.Held, 10, 500)
		s.call(0, "a", history.KindRelease, history.Released, 600, 601)
		s.call(1, "b", history.KindAcquire, history.Held, 20, 30)
		s.call(1, "b", history.KindRelease, history.Released, 550, 551)
		s.kill("step-pause", 0, "a", 15)
		s.in.samples.Workers, s.in.history.Streams[0].Sealed = nil, true
		last := s.in.events[len(s.in.events)-1]
		for i, event := range []string{"heal_started", "healed"} {
			last.Event, last.AtNS = event, start+int64(400+i)*ms
			s.in.events = append(s.in.events, last)
		}
		return s
	}
	r := build().result()
	if r.Faults[0].Status != "effective" {
		t.Errorf("fault %+v", r.Faults[0])
	}
	if len(r.Safety.Causes) != 1 || r.Safety.Causes[0].Cause != "a client paused at its step between" || r.Safety.Verdict != scenario.Unsafe || r.Safety.Promise != scenario.Broken {
		t.Errorf("safety %+v", r.Safety)
	}
	if len(r.Safety.Witnesses) == 0 || !strings.Contains(r.Safety.Witnesses[0].Sentence, "client 0 was paused from 0.015 s to 0.401 s") {
		t.Errorf("witnesses %+v", r.Safety.Witnesses)
	}
	s := build()
	s.in.history.Calls[0].Return = start + 399*ms
	if r := s.result(); r.Faults[0].Status != "missed" {
		t.Errorf("a call that returned during the pause: %+v", r.Faults[0])
	}
}
