package scenario_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

const ranked = `name: t
defaults: {workload: hot-key, warmup: 500ms, duration: 5s, repeat: 2}
scenarios:
  - {name: last, recipes: [redis/token, etcd/mutex], duration: 1s}
  - {name: second, priority: 2, recipes: [redis/token, etcd/mutex, memcached/cas]}
  - {name: first, priority: 1, recipes: [redis/token, etcd/mutex]}
  - {name: also-first, priority: 1, recipes: redis/token}
`

func within(t *testing.T, budget time.Duration, parallel int) (scenario.Selection, []string) {
	t.Helper()
	f := parse(t, ranked)
	sel := f.Within(budget, expand(t, f), parallel)
	var names []string
	for _, sc := range sel.Picked {
		names = append(names, fmt.Sprintf("%s %s %d", sc.Group, sc.Recipe, sc.Repeat))
	}
	return sel, names
}

// roomForThree is what three scenarios of five seconds take.
func roomForThree(t *testing.T) time.Duration {
	all := expand(t, parse(t, ranked))
	return scenario.Estimate(slices.DeleteFunc(all, func(sc scenario.Scenario) bool {
		return sc.Group != "second" || sc.Repeat != 1
	}), 1)
}

// A budget takes the most telling scenarios, each recipe in turn, and everything
// once before anything twice.
func TestWithinABudget(t *testing.T) {
	whole, all := within(t, time.Hour, 1)
	if len(all) != 16 || len(whole.LeftOut) != 0 || whole.Estimate != whole.Whole {
		t.Fatalf("an hour has no room for %v of %v: %+v", whole.Estimate, whole.Whole, whole.LeftOut)
	}
	sel, names := within(t, roomForThree(t), 1)
	if want := []string{"first redis/token 1", "first etcd/mutex 1", "also-first redis/token 1"}; !slices.Equal(names, want) {
		t.Errorf("three: %v, want %v", names, want)
	}
	if sel.Estimate != roomForThree(t) || sel.Whole != whole.Whole {
		t.Errorf("%v of %v", sel.Estimate, sel.Whole)
	}
	// Nothing twice before everything once.
	for budget := 20 * time.Second; budget < 3*time.Minute; budget += 13 * time.Second {
		sel, names := within(t, budget, 1)
		if sel.Estimate > budget {
			t.Errorf("%v: %v are estimated", budget, sel.Estimate)
		}
		out := 0
		for _, l := range sel.LeftOut {
			out += l.Scenarios
		}
		if out+len(names) != len(all) {
			t.Errorf("%v: %d picked and %d left out, of %d", budget, len(names), out, len(all))
		}
		again, _ := within(t, budget, 1)
		if !reflect.DeepEqual(sel, again) {
			t.Errorf("%v: %+v the first time, %+v the second", budget, sel, again)
		}
	}
	if sel, _ := within(t, time.Second, 1); len(sel.Picked) != 0 || len(sel.LeftOut) != 4 {
		t.Errorf("a second has room for %d", len(sel.Picked))
	}
}

// What does not fit is listed by block, with the recipes that do not run at all.
func TestWhatIsLeftOut(t *testing.T) {
	sel, _ := within(t, roomForThree(t), 1)
	for _, l := range sel.LeftOut {
		if l.Group == "second" {
			if want := []string{"etcd/mutex", "memcached/cas", "redis/token"}; l.Priority != 2 || l.Scenarios != 6 || !slices.Equal(l.Recipes, want) {
				t.Errorf("%+v, want priority 2, six scenarios of %v", l, want)
			}
			return
		}
	}
	t.Errorf("of the second block nothing is left out: %+v", sel.LeftOut)
}

// Side by side there is room for more, but not on the same servers.
func TestParallelEstimate(t *testing.T) {
	f := parse(t, ranked)
	all := expand(t, f)
	one, four := scenario.Estimate(all, 1), scenario.Estimate(all, 4)
	if four >= one {
		t.Errorf("%v by one, %v by four", one, four)
	}
	redis := slices.DeleteFunc(slices.Clone(all), func(sc scenario.Scenario) bool { return sc.Recipe != "redis/token" })
	if one, four := scenario.Estimate(redis, 1), scenario.Estimate(redis, 4); one != four {
		t.Errorf("on the same servers: %v by one, %v by four", one, four)
	}
	if scenario.Estimate(nil, 1) != 0 {
		t.Error("nothing takes time")
	}
}

// The faults that no picked scenario of a recipe has are listed; a repeat that was
// left out is not.
func TestFaultsThatABudgetLeavesOut(t *testing.T) {
	f := parse(t, `name: t
defaults: {workload: {kind: guarded-counter, hold: 50ms}, warmup: 500ms, duration: 20s, repeat: 2}
scenarios:
  - {name: first, priority: 1, recipes: [redis/token, etcd/mutex], faults: holder-pause}
  - {name: second, priority: 2, recipes: redis/token, faults: [holder-cut, holder-pause]}
`)
	all := expand(t, f)
	if left := f.Within(scenario.Estimate(all, 1), all, 1).NotTried; len(left) > 0 {
		t.Errorf("all fit, and %v is left out", left)
	}
	once := scenario.Estimate([]scenario.Scenario{all[0], all[1]}, 1)
	got := f.Within(once, all, 1)
	if want := "[{redis/token single [holder-cut + holder-pause]}]"; fmt.Sprint(got.NotTried) != want {
		t.Errorf("%v, want %s; picked %d", got.NotTried, want, len(got.Picked))
	}
}
