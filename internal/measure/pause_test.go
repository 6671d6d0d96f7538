package measure

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// paused has a holder that is stopped for six seconds, another client that takes
// over its lease of two, and a counter guarded twice.
func paused(info impls.Info) *story {
	s := newStory(info, 2)
	s.call(0, "p", history.KindAcquire, history.Held, 1000, 1001).Fence = 1
	s.call(1, "q", history.KindAcquire, history.Held, 1500, 3005).Fence = 2
	s.call(1, "q", history.KindWrite, history.Accepted, 3010, 3011).Arg = 1
	s.call(1, "q", history.KindWrite, history.Accepted, 3012, 3013).Arg = 1
	s.in.history.Calls[len(s.in.history.Calls)-1].Flags = history.FlagFenced
	s.call(1, "q", history.KindRelease, history.Released, 3050, 3051)
	s.call(1, "r", history.KindAcquire, history.Held, 3100, 3101).Fence = 3
	w := s.call(0, "p", history.KindWrite, history.Accepted, 7210, 7211)
	w.Arg, w.Flags, w.Fence = 1, history.FlagStale, 1
	s.call(0, "p", history.KindWrite, history.Rejected, 7212, 7213).Flags = history.FlagFenced
	s.call(0, "p", history.KindRelease, history.Lost, 7220, 7221)
	s.call(1, "r", history.KindRelease, history.Released, 7300, 7301)
	s.call(0, "s", history.KindAcquire, history.Held, 7400, 7401).Fence = 4
	s.call(0, "s", history.KindRelease, history.Released, 7500, 7501)
	for _, flags := range []history.Flags{0, history.FlagFenced} {
		f := s.call(history.Controller, "", history.KindFinal, history.Accepted, 10500, 10500)
		f.Flags, f.Arg, f.Value = flags, 2, 1
		if flags != 0 {
			f.Arg = 1
		}
	}
	for i := range s.in.history.Calls {
		if c := &s.in.history.Calls[i]; c.Kind == history.KindWrite && c.Fence == 0 {
			c.Fence = 2
		}
	}
	s.pause(0, "p", 1200, 7200)
	s.in.scenario.Expect = scenario.Expect{Verdict: scenario.Unsafe, Promise: scenario.Kept, Liveness: scenario.Live}
	return s
}

func TestPausedHolder(t *testing.T) {
	r := paused(leased()).result()
	f := r.Faults[0]
	if f.Status != "effective" || f.Target != "client 0 (pid 4711)" || f.Mechanism != "SIGSTOP" ||
		f.InjectedNS != 1200*ms || f.HealedNS != 7200*ms || f.OthersGrantedNS != 3005*ms || f.FirstGrantNS != 7401*ms || f.LongestWaitNS != 1505*ms {
		t.Errorf("fault %+v", f)
	}
	if r.RecoveryNS == nil || *r.RecoveryNS != 201*ms {
		t.Errorf("recovery %v", r.RecoveryNS)
	}
	sf := r.Safety
	if sf.Verdict != scenario.Unsafe || sf.Promise != scenario.Kept || sf.Liveness != scenario.Live || sf.Overlaps != 2 || sf.OverlapIncidents != 1 {
		t.Errorf("safety %+v", sf)
	}
	if len(sf.Registers) != 2 || sf.Registers[0].LostUpdates != 1 || *sf.Registers[0].StaleWrites != 1 || sf.Registers[1].LostUpdates != 0 || sf.Registers[1].Rejected != 1 || *sf.LostUpdates != 1 {
		t.Errorf("registers %+v", sf.Registers)
	}
	// Two overlaps, a lost update and a stale write, all of the pause.
	if len(sf.Causes) != 1 || sf.Causes[0] != (scenario.Cause{Cause: "lease outlived by a paused holder", Count: 4}) {
		t.Errorf("causes %+v", sf.Causes)
	}
	want := "client 0 was granted k0 at 1.001 s and still held it when client 1 was granted it at 3.005 s; both held it for 45ms; client 0 was paused from 1.200 s to 7.200 s"
	if sf.Witnesses[0].Sentence != want {
		t.Errorf("witness:\n%s\nwant\n%s", sf.Witnesses[0].Sentence, want)
	}
	for _, w := range sf.Witnesses {
		t.Logf("%s: %s", w.Class, w.Sentence)
	}
	if r.AsExpected == nil || !*r.AsExpected {
		t.Errorf("as expected: %v, %v", r.AsExpected, r.Surprises)
	}
}

// Without a lease, the same history is a broken guarantee.
func TestPauseExplainsNoMutex(t *testing.T) {
	info := leased()
	info.Bound, info.Fencing = impls.BoundConnection, false
	r := paused(info).result()
	if len(r.Safety.Causes) != 1 || r.Safety.Causes[0].Cause != checker.NoKnownCause || r.Safety.Promise != scenario.Broken {
		t.Errorf("causes %+v, promise %s", r.Safety.Causes, r.Safety.Promise)
	}
	if r.AsExpected == nil || *r.AsExpected {
		t.Errorf("as expected: %v", r.AsExpected)
	}
}

// A fault that hit nothing is missed even if the log shows an effect, and
// decides nothing.
func TestMissedFault(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(s *story)
		want string
	}{
		{"logged as missed", func(s *story) {
			s.in.events = []scenario.FaultEvent{{ID: "holder-pause-1", Event: "armed"}, {ID: "holder-pause-1", Event: "missed", Reason: "no holder"}}
		}, "no holder"},
		{"never armed", func(s *story) { s.in.events = nil }, "never armed"},
		{"never injected", func(s *story) { s.in.events = s.in.events[:1] }, "never injected"},
		{"never lifted", func(s *story) { s.in.events = s.in.events[:2] }, "when it was lifted"},
		{"let go before the end", func(s *story) { s.pauseAt(100, 300) }, "not through it"},
		{"not yet granted", func(s *story) { s.pauseAt(5, 15) }, "not got the lock yet"},
		{"granted as it began", func(s *story) { s.pauseAt(20, 100); s.in.events[1].AtNS += 1000 }, ""},
		{"granted too close to its beginning", func(s *story) {
			s.pauseAt(20, 100)
			s.in.events[1].AtNS += 1000
			s.in.samples.ClockUncertaintyNS = 600
		}, "the clocks leave open whether client 0 had got the lock"},
		{"let go too close to its end", func(s *story) {
			s.pauseAt(50, 200)
			s.in.events[2].AtNS -= 1000
			s.in.samples.ClockUncertaintyNS = 600
		}, "the clocks leave open whether client 0 still held"},
		{"let go as it ended", func(s *story) { s.pauseAt(50, 200) }, "not through it"},
		{"lifted early", func(s *story) { s.in.scenario.Faults[0].For = scenario.Duration(51 * time.Millisecond) }, "it was lifted after 50ms, planned were 51ms"},
		{"two clients in the process", func(s *story) { s.in.history.Streams[1].Worker = 0 }, "its process hosted client 1 as well"},
		{"no such hold", func(s *story) {
			for i := range s.in.events {
				s.in.events[i].Attempt = s.attempt("unknown").String()
			}
		}, "no hold of client 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStory(leased(), 2)
			s.hold(0, "a", 10, 20, 200)
			s.hold(1, "b", 30, 210, 220)
			s.pause(0, "a", 50, 100)
			s.in.scenario.Expect = scenario.Expect{Verdict: scenario.Safe}
			if r := s.result(); r.Faults[0].Status != "effective" || r.Safety.Verdict != scenario.Safe {
				t.Fatalf("before: %+v, %s", r.Faults[0], r.Safety.Verdict)
			}
			tc.do(s)
			r := s.result()
			if tc.want == "" { // close to the border, but on the right side of it
				if r.Faults[0].Status != "effective" {
					t.Errorf("fault %+v, want it effective", r.Faults[0])
				}
				return
			}
			if r.Faults[0].Status != "missed" || !strings.Contains(r.Faults[0].Reason, tc.want) {
				t.Errorf("fault %+v, want a reason with %q", r.Faults[0], tc.want)
			}
			if r.Safety.Verdict != scenario.Undecided || r.AsExpected != nil || len(r.Surprises) == 0 || r.RecoveryNS != nil {
				t.Errorf("verdict %s, as expected %v, surprises %v", r.Safety.Verdict, r.AsExpected, r.Surprises)
			}
		})
	}
}

func (s *story) pauseAt(from, to int64) {
	s.in.events = nil
	s.pause(0, "a", from, to)
}

// How long the others waited for one fault is not how long another stopped one
// of them.
func TestWaitsOfTheStopped(t *testing.T) {
	s := newStory(leased(), 3)
	s.hold(0, "a", 10, 20, 200)
	s.hold(1, "b", 30, 210, 220)
	s.hold(2, "c", 40, 5000, 5010)
	s.pause(0, "a", 50, 100)
	bystander := uint32(2)
	s.in.scenario.Faults = append(s.in.scenario.Faults, scenario.Fault{Kind: "random-nonholder-pause", At: scenario.Duration(time.Second)})
	for event, at := range map[string]int64{"injected": 60, "heal_started": 4990, "healed": 4990} {
		s.in.events = append(s.in.events, scenario.FaultEvent{ID: "random-nonholder-pause-2", Event: event, AtNS: start + at*ms, Client: &bystander, PID: 4712})
	}
	r := s.result()
	if got := r.Faults[0]; got.Status != "effective" || got.LongestWaitNS != 180*ms {
		t.Errorf("%+v", got)
	}
	if got := r.Faults[1]; got.Status != "effective" || got.LongestWaitNS != 180*ms {
		t.Errorf("%+v", got)
	}
}
