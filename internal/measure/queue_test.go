package measure

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

func queueing() impls.Info {
	info := leased()
	info.Polls, info.Properties = false, []impls.Property{impls.Ordered}
	return info
}

// wait adds an acquire that has its place at a moment, and its release.
func (s *story) wait(client uint32, attempt string, asked, placed, granted, released float64) *history.Call {
	s.hold(client, attempt, asked, granted, released)
	at := len(s.in.history.Calls) - 2
	if placed > 0 {
		s.call(client, attempt, history.KindEnqueued, history.Held, placed, placed)
	}
	return &s.in.history.Calls[at]
}

func TestInversions(t *testing.T) {
	for _, tc := range []struct {
		name string
		play func(s *story)
		want int64
	}{
		{"in order", func(s *story) {
			s.wait(0, "a", 1, 0, 2, 10)
			s.wait(1, "b", 3, 4, 11, 20)
			s.wait(2, "c", 5, 6, 21, 30)
		}, 0},
		{"one overtaken", func(s *story) {
			s.wait(0, "a", 1, 0, 2, 10)
			s.wait(1, "b", 3, 4, 21, 30)
			s.wait(2, "c", 5, 6, 11, 20)
		}, 1},
		{"overtaken by two", func(s *story) {
			s.wait(0, "b", 1, 2, 21, 30)
			s.wait(1, "c", 5, 6, 7, 8)
			s.wait(2, "d", 9, 10, 11, 12)
		}, 2},
		{"by one that never stood in the queue", func(s *story) {
			s.wait(0, "b", 1, 2, 21, 30)
			s.wait(1, "c", 5, 0, 7, 8)
		}, 1},
		// The second place may be the first on the server.
		{"asked while the other's place was not certain", func(s *story) {
			s.wait(0, "b", 1, 6, 21, 30)
			s.wait(1, "c", 5, 8, 9, 10)
		}, 0},
		{"another key", func(s *story) {
			s.wait(0, "b", 1, 2, 21, 30)
			s.wait(1, "c", 5, 6, 7, 8).Key = 1
		}, 0},
		{"granted together", func(s *story) {
			s.wait(0, "b", 1, 2, 21, 30)
			s.wait(1, "c", 5, 6, 21, 30)
		}, 0},
		{"a reader behind a reader", func(s *story) {
			s.wait(0, "b", 1, 2, 21, 30).Flags = history.FlagShared
			s.wait(1, "c", 5, 6, 7, 8).Flags = history.FlagShared
		}, 0},
		{"a reader behind a writer", func(s *story) {
			s.wait(0, "b", 1, 2, 21, 30)
			s.wait(1, "c", 5, 6, 7, 8).Flags = history.FlagShared
		}, 1},
		{"a writer behind a reader", func(s *story) {
			s.wait(0, "b", 1, 2, 21, 30).Flags = history.FlagShared
			s.wait(1, "c", 5, 6, 7, 8)
		}, 1},
		{"who was stopped may have lost its place", func(s *story) {
			s.wait(0, "b", 1, 2, 21, 30)
			s.wait(1, "c", 5, 6, 7, 8)
			s.pause(0, "b", 4, 9)
		}, 0},
		{"who died wants nothing", func(s *story) {
			s.wait(1, "c", 5, 6, 7, 8)
			s.call(0, "b", history.KindAcquire, history.Open, 1, -1)
			s.call(0, "b", history.KindEnqueued, history.Held, 2, 2)
			s.kill("step-kill", 0, "b", 4)
		}, 0},
		{"who gave up before", func(s *story) {
			s.call(0, "b", history.KindAcquire, history.Failed, 1, 4)
			s.call(0, "b", history.KindEnqueued, history.Held, 2, 2)
			s.wait(1, "c", 5, 6, 7, 8)
		}, 0},
		{"who gave up later", func(s *story) {
			s.call(0, "b", history.KindAcquire, history.Failed, 1, 9)
			s.call(0, "b", history.KindEnqueued, history.Held, 2, 2)
			s.wait(1, "c", 5, 6, 7, 8)
		}, 1},
		{"within the clocks' doubt", func(s *story) {
			s.in.samples.ClockUncertaintyNS = 2 * ms
			s.wait(0, "b", 1, 2, 21, 30)
			s.wait(1, "c", 5, 6, 7, 8)
		}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStory(queueing(), 3)
			s.in.samples.Workers = []scenario.WorkerSample{{Steps: map[string]int64{string(impls.StepWoken): 1}}}
			tc.play(s)
			// Null, where no client's place is certain, counts no inversion either.
			var got int64
			if r := s.result(); r.OrderInversions != nil {
				got = *r.OrderInversions
			}
			if got != tc.want {
				t.Errorf("%d inversions, want %d", got, tc.want)
			}
		})
	}
	s := newStory(queueing(), 2)
	s.wait(0, "b", 1, 2, 21, 30)
	s.wait(1, "c", 5, 6, 7, 8)
	if r := s.result(); r.OrderInversions != nil || !strings.Contains(r.Unmeasured["order_inversions"], "the time when it had one is unknown") {
		t.Errorf("a recipe that waits within a request: %v", r.OrderInversions)
	}
	s = newStory(leased(), 2)
	s.wait(0, "a", 1, 2, 3, 4)
	if r := s.result(); r.OrderInversions != nil || !strings.Contains(r.Unmeasured["order_inversions"], "promises no order") {
		t.Errorf("a recipe without a queue: %v", r.OrderInversions)
	}
}

func TestWoken(t *testing.T) {
	steps := func(waiting, woken int64) map[string]int64 {
		return map[string]int64{string(impls.StepWaiting): waiting, string(impls.StepWoken): woken}
	}
	for _, tc := range []struct {
		name  string
		polls bool
		steps map[string]int64
		want  float64 // 0: not measured
		why   string
	}{
		{"a queue", false, steps(2, 2), 1, ""},
		{"a herd", false, steps(9, 8), 4, ""},
		{"polling", true, steps(9, 0), 0, "polls"},
		{"within the server", false, steps(9, 0), 0, "do not show"},
		{"no waiter", false, nil, 0, "no client had to wait"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStory(queueing(), 2)
			s.in.info.Polls = tc.polls
			s.hold(0, "a", 10, 12, 22)
			s.hold(1, "b", 15, 26, 40)
			s.in.samples.Workers = []scenario.WorkerSample{{Steps: tc.steps}}
			r := s.result()
			if tc.want == 0 {
				if r.WokenPerRelease != nil || !strings.Contains(r.Unmeasured["woken_per_release"], tc.why) {
					t.Errorf("woken %v, because %s", r.WokenPerRelease, r.Unmeasured["woken_per_release"])
				}
			} else if r.WokenPerRelease == nil || *r.WokenPerRelease != tc.want {
				t.Errorf("woken %v, want %v", r.WokenPerRelease, tc.want)
			}
		})
	}
}

func TestTries(t *testing.T) {
	s := newStory(leased(), 2)
	s.call(0, "a", history.KindTry, history.Held, 10, 12).Fence = 1
	s.call(1, "b", history.KindTry, history.Busy, 15, 16)
	s.call(1, "c", history.KindTry, history.Busy, 17, 18)
	s.call(0, "a", history.KindRelease, history.Released, 20, 21)
	if r := s.result(); r.Busy != 2 || r.Failed != 2 || r.Acquired != 1 || r.TriesPerSecond == nil || *r.TriesPerSecond != 0.3 {
		t.Errorf("busy %d, failed %d, acquired %d, tries %v", r.Busy, r.Failed, r.Acquired, r.TriesPerSecond)
	}
}
