package run

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// onlooker remembers what was told of each scenario until it was done.
type onlooker struct {
	Silent
	mu   sync.Mutex
	told map[string][]string
	done map[string]bool
	late []string
}

func (o *onlooker) Violation(sc scenario.Scenario, what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told[sc.Name] = append(o.told[sc.Name], what)
	if o.done[sc.Name] {
		o.late = append(o.late, sc.Name)
	}
}

func (o *onlooker) Done(r scenario.Result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done[r.Name] = true
}

func newOnlooker() *onlooker { return &onlooker{told: map[string][]string{}, done: map[string]bool{}} }

// saw checks that each of these was told of a scenario, or nothing if there are
// none, and all of it while it was going on.
func (o *onlooker) saw(t *testing.T, r scenario.Result, what ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	told := strings.Join(o.told[r.Name], "\n")
	if len(what) == 0 && told != "" {
		t.Errorf("the right lock is accused:\n%s", told)
	}
	for _, x := range what {
		if !strings.Contains(told, x) {
			t.Errorf("while it went on nothing told of %q, but:\n%s", x, told)
		}
	}
	if slices.Contains(o.late, r.Name) {
		t.Error("it was told after the end")
	}
}

// What is wrong with a lock shows while it is used, and of the right one nothing
// does.
func TestWatch(t *testing.T) {
	t.Parallel()
	look := newOnlooker()
	tells := func(what ...string) func(*testing.T, scenario.Result) {
		return func(t *testing.T, r scenario.Result) { look.saw(t, r, what...) }
	}
	storm := scenario.Settings{
		Clients: []int{2},
		Scenario: scenario.Scenario{
			Workload: scenario.Load{
				Kind: scenario.TryStorm, Hold: scenario.Dist{Kind: scenario.DistConstant, A: 100 * time.Microsecond}, Think: scenario.Dist{Kind: scenario.DistConstant, A: time.Millisecond},
			},
			TTL: scenario.Duration(4 * time.Second), Duration: scenario.Duration(3 * time.Second)},
	}
	outlived := scenario.Settings{
		Clients: []int{8}, Scenario: scenario.Scenario{Workload: scenario.Load{Kind: scenario.GuardedCounter, Hold: scenario.Dist{Kind: scenario.DistUniform, A: 10 * time.Millisecond, B: 90 * time.Millisecond}},
			TTL: scenario.Duration(50 * time.Millisecond), Duration: scenario.Duration(3 * time.Second), Poll: scenario.Poll{Min: time.Millisecond, Max: 3 * time.Millisecond}},
	}
	tryWith(t, []trial{
		{"right", "reference/mutex", storm, tells()},
		{"refused", "reference/broken-busy", storm, tells("was refused k0")},
		{"late success", "reference/broken-late", outlived, tells("both hold k0", "though that hold was over", "an update is lost")},
	}, func(o *Options) { o.Progress = look })
}
