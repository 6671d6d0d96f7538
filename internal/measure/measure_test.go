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
	"github.com/lockbench/lockbench/internal/scenario"
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

// story builds a scenario in milliseconds since the window's start.
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
	s.in.scenario.Faults = []scenario.Fault{{Kind: "holder-pause"}}
	key := uint32(0)
	e := scenario.FaultEvent{ID: "holder-pause-1", Fault: "holder-pause"}
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
	k := history.Keep(s.in.history)
	defer k.Close()
	in := *s.in
	in.keyed(k)
	r, _, err := derive(&in)
	if err != nil {
		panic(err)
	}
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
	// An acquire from the warm-up counts in no rate, but its grant was in the first second.
	if *r.Throughput != 0.5 || len(r.PerSecond) != 10 || r.PerSecond[0] != 5 || r.PerSecond[1] != 1 || r.PerSecond[9] != 0 {
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

// Every null field has a reason.
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
	// A machine that only this run uses is not busy.
	for _, c := range []struct {
		used, others float64
		busy         bool
	}{{1, 0.05, false}, {1, 0.15, true}, {0.8, 0.4, false}, {0.8, 0.6, true}} {
		s.in.samples.BusyCPU, s.in.samples.OthersCPU = &c.used, &c.others
		if r := s.result(); has(r, "machine busy") != c.busy {
			t.Errorf("%v: %v", c, r.Warnings)
		}
	}
	busy := 0.95
	s.in.samples.BusyCPU, s.in.samples.OthersCPU = &busy, nil
	s.in.samples.ClockUncertaintyNS = ms
	s.in.samples.Workers = []scenario.WorkerSample{{PID: 9, CPUNS: 39 * sec, Error: "killed"}}
	r := s.result()
	for _, text := range []string{"generator saturated", "machine busy", "clocks uncertain", "pid 9"} {
		if !has(r, text) {
			t.Errorf("no warning of %q: %v", text, r.Warnings)
		}
	}
}

// A warning counts the pairs whose overlap the clocks leave open, in the singular
// or plural.
func TestUncertainOverlapsAreCounted(t *testing.T) {
	for n, want := range map[int]string{1: "whether 1 more pair of holds overlapped", 2: "whether 2 more pairs of holds overlapped"} {
		s := newStory(leased(), 2)
		for i := range n {
			from := float64(1000 * i)
			s.hold(0, fmt.Sprint("a", i), from, from+10, from+20)
			s.hold(1, fmt.Sprint("b", i), from, from+19.999, from+30) // within what the clocks may be off
		}
		for i := range s.in.history.Streams {
			s.in.history.Streams[i].ClockUncertainty = ms
		}
		if r := s.result(); !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, want) }) {
			t.Errorf("no warning of %q: %v", want, r.Warnings)
		}
	}
}

// Faults are numbered by their times, not by their places in the list.
func TestFaultsByTime(t *testing.T) {
	s := newStory(leased(), 2)
	s.hold(0, "a", 10, 20, 200)
	s.hold(1, "b", 30, 210, 220)
	s.pause(0, "a", 50, 100)
	s.in.scenario.Faults = []scenario.Fault{{Kind: "holder-pause", At: scenario.Duration(9 * time.Second)}, {Kind: "holder-pause", At: scenario.Duration(time.Millisecond)}}
	r := s.result()
	if len(r.Faults) != 2 || r.Faults[0].Status != "effective" || r.Faults[1].Status != "missed" {
		t.Errorf("faults %+v", r.Faults)
	}
}
