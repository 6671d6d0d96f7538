package measure

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

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
			if want := "the history is damaged in 1 place; first:"; tc.damage && !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, want) }) {
				t.Errorf("no warning of %q: %v", want, r.Warnings)
			}
			if want := "the history is damaged in 1 place, first"; tc.damage && !strings.Contains(r.Surprises[0], want) {
				t.Errorf("not surprised that %q: %v", want, r.Surprises)
			}
		})
	}
}

// After a worker or a server died, the record is true but may be incomplete, so
// it does not prove that the lock is safe.
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
