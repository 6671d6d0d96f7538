package run

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// onlooker records the violations reported for each scenario until it was done.
type onlooker struct {
	Silent
	mu       sync.Mutex
	reported map[string][]string
	done     map[string]bool
	late     []string
}

func (o *onlooker) Violation(sc scenario.Scenario, what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reported[sc.Name] = append(o.reported[sc.Name], what)
	if o.done[sc.Name] {
		o.late = append(o.late, sc.Name)
	}
}

func (o *onlooker) Done(r scenario.Result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done[r.Name] = true
}

// has reports whether this was reported for a scenario.
func (o *onlooker) has(name, what string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(strings.Join(o.reported[name], "\n"), what)
}

func newOnlooker() *onlooker {
	return &onlooker{reported: map[string][]string{}, done: map[string]bool{}}
}

// saw checks that each of these was reported for a scenario, or nothing if there
// are none, and all of it while the scenario was running.
func (o *onlooker) saw(t *testing.T, r scenario.Result, what ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	reported := strings.Join(o.reported[r.Name], "\n")
	if len(what) == 0 && reported != "" {
		t.Errorf("the right lock is accused:\n%s", reported)
	}
	for _, x := range what {
		if !strings.Contains(reported, x) {
			t.Errorf("while it went on %q was not reported, but:\n%s", x, reported)
		}
	}
	if slices.Contains(o.late, r.Name) {
		t.Error("it was reported after the end")
	}
}

// Double holds of a broken lock are reported while it is used, and none of a
// correct lock.
func TestWatch(t *testing.T) {
	t.Parallel()
	look := newOnlooker()
	held := func(ttl time.Duration) scenario.Settings {
		return scenario.Settings{Clients: []int{8}, Scenario: scenario.Scenario{Workload: scenario.Load{Kind: scenario.GuardedCounter, Hold: scenario.Dist{Kind: scenario.DistUniform, A: 10 * time.Millisecond, B: 90 * time.Millisecond}},
			TTL: scenario.Duration(ttl), Duration: long, Poll: scenario.Poll{Min: time.Millisecond, Max: 3 * time.Millisecond}}}
	}
	tryWith(t, []trial{
		{"right", "reference/mutex", held(4 * time.Second), func(t *testing.T, r scenario.Result) { look.saw(t, r) }},
		{"late success", "reference/broken-late", held(50 * time.Millisecond), func(t *testing.T, r scenario.Result) { look.saw(t, r, "both hold k0") }},
	}, func(o *Options) {
		o.Progress = look
		o.enough = func(sc scenario.Scenario, acquired uint64) bool {
			if sc.Recipe == "reference/mutex" {
				return acquired > 50
			}
			return look.has(sc.Name, "both hold k0")
		}
	})
}
