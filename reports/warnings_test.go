package reports

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Equal warnings are one footnote with its bounds and a count of scenarios,
// different ones are not thrown together, and none gets lost.
func TestWarningsAreCountedNotRepeated(t *testing.T) {
	rs := []result{
		{Name: "a", Warnings: []string{"machine busy: 91 % of its CPU time was used"}},
		{Name: "b", Warnings: []string{"machine busy: 97 % of its CPU time was used", "generator saturated: the workers used 80 % of the machine's 4 CPUs"}},
		{Name: "c", Warnings: []string{"generator saturated: the workers used 90 % of the machine's 4 CPUs"}},
		{Name: "d", Warnings: []string{"the worker with pid 7 did not come to its end: killed"}},
		{Name: "e"},
	}
	b := newBuilder(run{doc: scenario.Document{Scenarios: rs}})
	for _, r := range rs {
		marks := b.warnings([]result{r})
		if len(marks) != len(r.Warnings) {
			t.Errorf("%s has %d warnings and the marks %v", r.Name, len(r.Warnings), marks)
		}
	}
	want := []string{
		"Warning: machine busy: 91 to 97 % of its CPU time was used (in 2 of 5 scenarios)",
		"Warning: for example, generator saturated: the workers used 80 % of the machine's 4 CPUs (in 2 of 5 scenarios)",
		"Warning: the worker with pid 7 did not come to its end: killed (in 1 of 5 scenarios)",
	}
	if !slices.Equal(b.notes, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(b.notes, "\n"), strings.Join(want, "\n"))
	}
}

// Few samples matter where a 99th percentile stands, and nowhere else.
func TestFewSamplesMarkThePercentile(t *testing.T) {
	for count, marked := range map[int64]bool{99: true, 100: false} {
		r := result{Name: "a", Status: scenario.StatusDone, Acquire: &scenario.Latency{P99: 5, Count: count}, Warnings: []string{"few samples: so many acquires"}}
		b := newBuilder(run{})
		if marks := b.warnings([]result{r}); len(marks) > 0 {
			t.Errorf("the row is marked %v", b.notes)
		}
		if c := b.percentile([]result{r}, "p99", mAcquire(p99), acquire); (len(c.Marks) == 1) != marked {
			t.Errorf("%d acquires: marks %v", count, c.Marks)
		}
	}
}

// The arrivals of an open loop above capacity are in a sentence, and its row points
// at one footnote instead of one per figure.
func TestOpenLoopAboveCapacity(t *testing.T) {
	r := result{
		Name: "a", Group: "hot-key", Recipe: "redis/token", Status: scenario.StatusDone, Clients: 4,
		Workload: scenario.Load{Kind: "hot-key", Arrival: "poisson", Rate: 2000},
		Arrivals: &scenario.Arrivals{Arrived: 100, Completed: 30, Dropped: 60, InFlight: 10},
		Warnings: []string{"60 of 100 arrivals were dropped: the load is above the capacity, and response times have no steady state"},
	}
	text := tableText(t, scenario.Document{Scenarios: []result{r}}, TextOptions{Width: 200})
	for _, want := range []string{"100 arrived = 30 completed + 60 dropped + 10 in flight", "above its capacity"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "were dropped"); n != 1 {
		t.Errorf("dropped arrivals have %d notes\n%s", n, text)
	}
}
