package measure

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/scenario"
)

const (
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
	// The window of the tests: ten seconds from here.
	start = 1000 * sec
)

func leased() impls.Info {
	return impls.Info{ID: "test/lease", Backend: "test", Bound: impls.BoundTTL, Fencing: true, Polls: true,
		Requests: []string{"set", "eval*"}, Takeover: func(ttl time.Duration) time.Duration { return ttl }}
}

// story tells a scenario in milliseconds since the window's start.
type story struct {
	in   *input
	seqs map[uint32]uint32
	n    map[string]history.Attempt
}

func newStory(info impls.Info, clients int) *story {
	s := &story{in: &input{info: info, history: &history.History{}, sampled: true, cpus: 4}, seqs: map[uint32]uint32{}, n: map[string]history.Attempt{}}
	s.in.scenario = scenario.Scenario{Name: "story", Recipe: info.ID, Clients: clients, Workers: clients, TTL: scenario.Duration(2 * time.Second),
		Workload: scenario.Load{Kind: "hot-key", Keys: 1, Arrival: "closed"}}
	s.in.samples = scenario.Samples{Start: start, End: start + 10*sec}
	for c := range clients {
		s.in.history.Streams = append(s.in.history.Streams, history.Stream{Client: uint32(c), Worker: uint32(c), Sealed: true, SealedAt: start + 11*sec})
	}
	return s
}

func (s *story) attempt(name string) history.Attempt {
	a, ok := s.n[name]
	if !ok {
		binary.BigEndian.PutUint64(a[:], uint64(len(s.n)+1))
		s.n[name] = a
	}
	return a
}

// call adds a call; from and to are milliseconds, to < 0 leaves it open.
func (s *story) call(client uint32, attempt string, k history.Kind, o history.Outcome, from, to float64) *history.Call {
	at := func(x float64) int64 { return start + int64(x*float64(ms)) }
	c := history.Call{Client: client, Seq: s.seqs[client], Kind: k, Outcome: o, Attempt: s.attempt(attempt), Invoke: at(from), Intended: at(from)}
	if to >= from {
		c.Return = at(to)
	}
	s.seqs[client]++
	calls := &s.in.history.Calls
	*calls = append(*calls, c)
	return &(*calls)[len(*calls)-1]
}

// hold adds an acquire and its release.
func (s *story) hold(client uint32, attempt string, asked, granted, released float64) {
	s.call(client, attempt, history.KindAcquire, history.Held, asked, granted).Fence = uint64(granted*1000) + 1_000_000
	s.call(client, attempt, history.KindRelease, history.Released, released, released+1)
}

// pause adds the events of a holder-pause.
func (s *story) pause(client uint32, attempt string, from, to int64) {
	s.in.scenario.Faults = []scenario.Fault{{Kind: scenario.HolderPause}}
	key := uint32(0)
	e := scenario.FaultEvent{ID: "holder-pause-1", Fault: scenario.HolderPause}
	add := func(event string, at int64) {
		e.Event, e.AtNS = event, start+at*ms
		s.in.events = append(s.in.events, e)
	}
	add("armed", 0)
	e.Client, e.Key, e.PID, e.Attempt, e.How = &client, &key, 4711, s.attempt(attempt).String(), "SIGSTOP; holder found in shared memory, try 1"
	add("injected", from)
	add("heal_started", to)
	add("healed", to)
}

func (s *story) result() scenario.Result {
	slices.SortStableFunc(s.in.history.Calls, func(a, b history.Call) int { return int(a.Invoke - b.Invoke) })
	r, _ := derive(s.in)
	return r
}

// The checker's words and the results' words are the same.
func TestWords(t *testing.T) {
	for a, b := range map[string]string{
		checker.Safe: scenario.Safe, checker.Unsafe: scenario.Unsafe, checker.Kept: scenario.Kept, checker.Broken: scenario.Broken,
		checker.Live: scenario.Live, checker.Stuck: scenario.Stuck, checker.Unknown: scenario.Undecided,
	} {
		if a != b {
			t.Errorf("the checker says %q, results say %q", a, b)
		}
	}
}

func near(got, want int64) bool { return math.Abs(float64(got-want)) <= 0.002*float64(want)+1 }

func TestNumbers(t *testing.T) {
	s := newStory(leased(), 3)
	warm := s.call(0, "w", history.KindAcquire, history.Held, -5, 2) // returns within, begun before
	warm.Flags, warm.Fence = history.FlagWarmup, 1
	s.call(0, "w", history.KindRelease, history.Released, 3, 4)
	s.hold(0, "a", 10, 12, 22)
	s.hold(1, "b", 15, 26, 40) // waited through a's release at 22: handed over in 4
	s.hold(1, "c", 43, 44, 50) // same client: no handoff
	s.hold(2, "d", 52, 54, 60) // came after the release: no handoff
	s.hold(0, "e", 1500, 1503, 1510)
	s.call(2, "f", history.KindAcquire, history.Unknown, 2000, 2100)
	s.call(2, "f", history.KindCleanup, history.Lost, 2100, 2101) // known after all
	s.call(1, "g", history.KindAcquire, history.Unknown, 2200, 2300)
	s.call(0, "h", history.KindAcquire, history.Failed, 2400, 2500)
	s.call(2, "z", history.KindAcquire, history.Held, 9990, 10005).Fence = 99_000_000 // after the window
	s.in.samples.Workers = []scenario.WorkerSample{{CPUNS: sec / 2}, {CPUNS: sec / 2}}
	s.in.samples.Servers = []scenario.ServerSample{{CPUNS: 2 * sec, Counters: map[string]int64{"set": 7, "evalsha": 5, "ping": 100}}}
	r := s.result()

	if r.Acquired != 5 || r.Failed != 1 || r.Unknown != 1 {
		t.Errorf("acquired %d, failed %d, unknown %d", r.Acquired, r.Failed, r.Unknown)
	}
	if *r.Throughput != 0.5 || len(r.PerSecond) != 10 || r.PerSecond[0] != 4 || r.PerSecond[1] != 1 {
		t.Errorf("throughput %v, per second %v", *r.Throughput, r.PerSecond)
	}
	if a := r.Acquire; a.Count != 5 || a.Max != 11*ms || !near(a.P50, 2*ms) || !near(a.P99, 11*ms) || !near(int64(a.Mean), 19*ms/5) {
		t.Errorf("acquire %+v", *a)
	}
	if h := r.Handoff; h == nil || h.Count != 1 || h.Max != 4*ms {
		t.Errorf("handoff %+v", h)
	}
	// The warm-up's release returned within the window, and is unmarked here.
	if r.Release.Count != 6 || r.HoldNS.Count != 5 || r.HoldNS.Max != 14*ms {
		t.Errorf("release %+v, hold %+v", *r.Release, *r.HoldNS)
	}
	// Jain of 2, 2, 1.
	if math.Abs(*r.FairnessJain-25.0/27) > 1e-9 || *r.PerClientMin != 1 || *r.PerClientMax != 2 {
		t.Errorf("fairness %v, %d to %d", *r.FairnessJain, *r.PerClientMin, *r.PerClientMax)
	}
	if *r.RequestsPerAcquire != 12.0/5 || *r.ClientCPU != 200 || *r.ServerCPU != 400 {
		t.Errorf("requests %v, client CPU %v, server CPU %v", *r.RequestsPerAcquire, *r.ClientCPU, *r.ServerCPU)
	}
	if *r.UnavailableNS != 100*ms {
		t.Errorf("unavailable %v", time.Duration(*r.UnavailableNS))
	}
	for _, field := range []string{"response_ns", "recovery_ns", "arrivals", "lost_updates"} {
		if r.Unmeasured[field] == "" {
			t.Errorf("%s is not measured, and no reason given", field)
		}
	}
	if r.Response != nil || r.RecoveryNS != nil || r.Arrivals != nil || r.Safety.LostUpdates != nil {
		t.Error("something is measured that was not")
	}
	if r.Safety.Verdict != scenario.Safe || r.Safety.Promise != scenario.Kept || r.Safety.Liveness != scenario.Live {
		t.Errorf("safety %+v", r.Safety)
	}
	if r.AsExpected == nil || !*r.AsExpected {
		t.Errorf("nothing was expected: %v, %v", r.AsExpected, r.Surprises)
	}
}

// What every null field owes.
func TestNullsHaveReasons(t *testing.T) {
	r := newStory(leased(), 1).result()
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if v.Field(i).Kind() == reflect.Pointer && v.Field(i).IsNil() && name != "as_expected" && r.Unmeasured[name] == "" {
			t.Errorf("%s is null without a reason", name)
		}
	}
	if r.Safety.Verdict != scenario.Undecided {
		t.Errorf("a scenario in which nothing happened is %s", r.Safety.Verdict)
	}
}

// paused tells of a holder stopped for six seconds, whose lease of two another
// took, and a counter guarded twice.
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

// The very same history without a lease is no excuse, but a broken promise.
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

// A fault that hit nothing is missed, whatever the log says, and decides
// nothing.
func TestMissedFault(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(s *story)
		want string
	}{
		{"logged as missed", func(s *story) {
			s.in.events = []scenario.FaultEvent{{ID: "holder-pause-1", Event: "armed"}, {ID: "holder-pause-1", Event: "missed", Reason: "nobody held"}}
		}, "nobody held"},
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
				s.in.events[i].Attempt = s.attempt("nobody").String()
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

func TestExpectations(t *testing.T) {
	yes, no := ptr(true), ptr(false)
	for _, tc := range []struct {
		name   string
		expect scenario.Expect
		damage bool
		want   *bool
	}{
		{"all as expected", scenario.Expect{Verdict: scenario.Safe, Promise: scenario.Kept, Liveness: scenario.Live, Thresholds: []string{"acquire.p99 < 1s", "throughput > 0.1/s"}}, false, yes},
		{"safe where a violation was expected", scenario.Expect{Verdict: scenario.Unsafe}, false, no},
		{"a threshold missed", scenario.Expect{Thresholds: []string{"acquire.p99 < 1ms"}}, false, no},
		{"a threshold that was not measured", scenario.Expect{Thresholds: []string{"recovery < 1ms"}}, false, nil},
		{"not measured, and another missed", scenario.Expect{Thresholds: []string{"recovery < 1ms", "throughput > 99999/s"}}, false, no},
		{"damaged", scenario.Expect{Verdict: scenario.Safe}, true, nil},
		{"unknown where an answer was expected", scenario.Expect{Verdict: scenario.Safe, Liveness: scenario.Live}, false, nil},
		{"unknown, and another answer is wrong", scenario.Expect{Promise: scenario.Broken, Liveness: scenario.Live}, false, no},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStory(leased(), 2)
			s.hold(0, "a", 10, 20, 200)
			s.hold(1, "b", 30, 210, 220)
			s.in.scenario.Expect = tc.expect
			if strings.HasPrefix(tc.name, "unknown") {
				s.in.info.Takeover = nil // without a bound liveness is unknown
			}
			if tc.damage {
				s.in.history.Damage = []history.Damage{{File: "x", What: "a bit"}}
			}
			r := s.result()
			if !reflect.DeepEqual(r.AsExpected, tc.want) || (len(r.Surprises) > 0) != (tc.want != yes) {
				t.Errorf("as expected %v, surprises %v", r.AsExpected, r.Surprises)
			}
		})
	}
}

// A worker that died, or servers that did, leave nothing to be taken for good:
// what is recorded is true, but nobody knows what is not.
func TestIncompleteIsInconclusive(t *testing.T) {
	for _, tc := range []struct {
		name   string
		do     func(s *story)
		status scenario.Status
	}{
		{"a worker died", func(s *story) {
			s.in.samples.Workers = []scenario.WorkerSample{{PID: 7, Clients: []uint32{1}, Error: "killed"}}
		}, scenario.StatusDone},
		{"a server died", func(s *story) { s.in.samples.Trouble = "redis-1: killed" }, scenario.StatusFailed},
		{"the run died", func(s *story) { s.in.died = "the run ended early" }, scenario.StatusInterrupted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStory(leased(), 2)
			s.hold(0, "a", 10, 20, 200)
			s.hold(1, "b", 30, 210, 220)
			s.in.scenario.Expect = scenario.Expect{Promise: scenario.Kept} // true as it is
			if r := s.result(); r.AsExpected == nil || !*r.AsExpected {
				t.Fatalf("before: %v", r.Surprises)
			}
			tc.do(s)
			r := s.result()
			if r.Safety.Verdict != scenario.Undecided || r.Safety.Promise != scenario.Undecided || r.Safety.Liveness != scenario.Undecided {
				t.Errorf("safety %+v", r.Safety)
			}
			if r.AsExpected != nil || len(r.Surprises) == 0 || r.Status != tc.status {
				t.Errorf("status %s, verdict %s, as expected %v, surprises %v", r.Status, r.Safety.Verdict, r.AsExpected, r.Surprises)
			}
		})
	}
}

func TestOpenLoop(t *testing.T) {
	s := newStory(leased(), 2)
	s.in.scenario.Workload.Arrival = "poisson"
	s.call(0, "a", history.KindAcquire, history.Held, 10, 12).Intended -= 5 * ms
	s.call(0, "a", history.KindRelease, history.Released, 20, 21)
	for i := range 5 {
		s.hold(1, fmt.Sprint(i), float64(30+3*i), float64(31+3*i), float64(32+3*i))
	}
	s.in.samples.Workers = []scenario.WorkerSample{{Arrived: 5, Completed: 4, InFlight: 1}, {Arrived: 2, Completed: 2}}
	r := s.result()
	unfit := func(r scenario.Result) bool {
		return slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "do not fit the history") })
	}
	if unfit(r) {
		t.Errorf("6 acquires on record, 6 completed, 1 in flight: %v", r.Warnings)
	}
	for _, completed := range []int64{2, 5} { // in all 4 and 7, beside 1 in flight
		s.in.samples.Workers[0].Completed, s.in.samples.Workers[0].Arrived = completed, completed+1
		if r := s.result(); !unfit(r) {
			t.Errorf("6 acquires on record, %d completed, 1 in flight: %v", completed+2, r.Warnings)
		}
	}
	s.in.samples.Workers[0].Completed, s.in.samples.Workers[0].Arrived = 4, 5
	if r.Response == nil || r.Response.Max != 7*ms || r.Acquire.Max != 2*ms || r.Arrivals == nil || r.Arrivals.Arrived != 7 {
		t.Errorf("response %+v, arrivals %+v", r.Response, r.Arrivals)
	}
	s.in.samples.Workers[0].Dropped, s.in.samples.Workers[0].Arrived = 3, 8
	if r := s.result(); r.Response != nil || !strings.Contains(r.Unmeasured["response_ns"], "no steady state") {
		t.Errorf("dropped arrivals, and yet response times: %+v", r.Response)
	}
	s.in.samples.Workers[0].Arrived = 9
	if r := s.result(); !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "do not add up") }) {
		t.Errorf("a book that does not add up: %v", r.Warnings)
	}
}

func TestWarnings(t *testing.T) {
	has := func(r scenario.Result, text string) bool {
		return slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, text) })
	}
	s := newStory(leased(), 2)
	for i := range 1200 {
		s.hold(0, fmt.Sprint(i), float64(4*i), float64(4*i+1), float64(4*i+2))
	}
	if r := s.result(); len(r.Warnings) > 0 {
		t.Errorf("warnings without cause: %v", r.Warnings)
	}
	busy := 0.95
	s.in.samples.BusyCPU = &busy
	s.in.samples.ClockUncertaintyNS = ms
	s.in.samples.Workers = []scenario.WorkerSample{{PID: 9, CPUNS: 39 * sec, Error: "killed"}}
	r := s.result()
	for _, text := range []string{"generator saturated", "machine busy", "clocks uncertain", "pid 9"} {
		if !has(r, text) {
			t.Errorf("no warning of %q: %v", text, r.Warnings)
		}
	}
}

// Faults are numbered by their times, not by their places in the list.
func TestFaultsByTime(t *testing.T) {
	s := newStory(leased(), 2)
	s.hold(0, "a", 10, 20, 200)
	s.hold(1, "b", 30, 210, 220)
	s.pause(0, "a", 50, 100)
	s.in.scenario.Faults = []scenario.Fault{{Kind: scenario.HolderPause, At: scenario.Duration(9 * time.Second)}, {Kind: scenario.HolderPause, At: scenario.Duration(time.Millisecond)}}
	r := s.result()
	if len(r.Faults) != 2 || r.Faults[0].Status != "effective" || r.Faults[1].Status != "missed" {
		t.Errorf("faults %+v", r.Faults)
	}
}
