package suites_test

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/suites"
)

// catalogue stands in for the recipes, which this package may not import.
func catalogue() scenario.Catalogue {
	recipe := func(id, bound string, fencing bool) scenario.RecipeFacts {
		backend, _, _ := strings.Cut(id, "/")
		return scenario.RecipeFacts{ID: id, Backend: backend, Bound: bound, Fencing: fencing, Topologies: []string{"single"}}
	}
	var all []scenario.RecipeFacts
	for backend, recipes := range map[string][]string{
		"reference": {"mutex", "broken", "broken-expiry", "broken-token", "broken-owner", "broken-late", "broken-release", "broken-loss", "broken-busy", "broken-wakeup", "broken-traffic"},
		"redis":     {"token", "watchdog", "pubsub", "fenced", "reentrant", "batch", "setnx-expire", "getset", "redlock"},
		"etcd":      {"mutex", "client-mutex", "single-key"},
		"zookeeper": {"sequence", "read-write", "client-lock", "exclusive-node", "watch-children"},
		"memcached": {"cas", "add-delete", "timestamp"},
		"mysql":     {"lease-row", "get-lock", "insert", "insert-reaper", "insert-reentrant", "insert-reentrant-count", "for-update", "for-update-no-index"},
		"postgres":  {"lease-row", "advisory"},
	} {
		for _, name := range recipes {
			bound := "ttl"
			switch {
			case backend == "etcd" || backend == "zookeeper":
				bound = "session"
			case name == "get-lock" || name == "advisory" || strings.HasPrefix(name, "for-update"):
				bound = "connection"
			}
			r := recipe(backend+"/"+name, bound, bound == "session" || name == "lease-row")
			r.LockDelay = r.ID == "etcd/mutex" || r.ID == "etcd/single-key"
			switch {
			case bound == "session" && backend != "redis" || name == "redlock":
				r.Topologies = append(r.Topologies, "quorum")
			case backend == "redis" || backend == "mysql":
				r.Topologies = append(r.Topologies, "replicated")
				if r.Bound == "connection" || name == "lease-row" || name == "insert" {
					r.Topologies = append(r.Topologies, "galera")
				}
			case backend == "postgres":
				r.Topologies = append(r.Topologies, "replicated", "pooled")
			case backend == "memcached":
				r.Topologies = append(r.Topologies, "sharded")
			}
			all = append(all, r)
		}
	}
	return scenario.NewCatalogue(chaos.Actions(), all...)
}

func expand(t *testing.T, name string) []scenario.Scenario {
	t.Helper()
	f, err := suites.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if f.Name != name {
		t.Errorf("the suite %s is named %s", name, f.Name)
	}
	all, err := f.Expand(catalogue())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEverySuiteIsListedAndDescribed(t *testing.T) {
	entries, err := suites.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Summary == "" {
			t.Errorf("%s has no description", e.Name)
		}
		expand(t, e.Name)
	}
	files, err := fs.Glob(os.DirFS("."), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !slices.Contains(suites.Names(), strings.TrimSuffix(file, ".yaml")) {
			t.Errorf("%s is not among Names", file)
		}
	}
}

// The quick suite promises a report in under four minutes on two cores. The
// planned time leaves the rest for set-up of scenarios and the report.
func TestQuickFitsItsTime(t *testing.T) {
	const budget = 190 * time.Second
	var sum time.Duration
	for _, sc := range expand(t, "quick") {
		sum += (sc.Warmup + sc.Duration).D()
	}
	t.Logf("planned: %s", sum)
	if sum > budget {
		t.Errorf("quick plans %s, more than %s", sum, budget)
	}
}

func TestQuickComparesTheFive(t *testing.T) {
	type key struct {
		group   string
		clients int
		repeat  int
	}
	got := map[key][]string{}
	for _, sc := range expand(t, "quick") {
		k := key{sc.Group, sc.Clients, sc.Repeat}
		got[k] = append(got[k], sc.Recipe)
		if sc.TTL.D() != 4*time.Second {
			t.Errorf("%s: ttl %s", sc.Name, sc.TTL)
		}
		if sc.Group == "holder-pause" {
			if sc.Workers != sc.Clients || sc.Faults[0].For.D() != 10*time.Second {
				t.Errorf("%s: %d workers, pause %s", sc.Name, sc.Workers, sc.Faults[0].For)
			}
			want := scenario.Unsafe
			if sc.Recipe == "mysql/get-lock" {
				want = scenario.Safe
			}
			if sc.Expect.Verdict != want || sc.Expect.Promise != scenario.Kept {
				t.Errorf("%s: expects %+v", sc.Name, sc.Expect)
			}
		}
	}
	five := []string{"redis/token", "etcd/mutex", "zookeeper/sequence", "memcached/cas", "mysql/lease-row"}
	want := map[key][]string{
		{"uncontended", 1, 1}: five, {"uncontended", 8, 1}: five, {"uncontended", 32, 1}: five,
		{"contended", 16, 1}: five, {"contended", 16, 2}: five, {"contended", 16, 3}: five,
		{"holder-pause", 6, 1}: append(slices.Clone(five), "mysql/get-lock"),
	}
	if len(got) != len(want) {
		t.Errorf("%d groups, want %d: %v", len(got), len(want), got)
	}
	for k, recipes := range want {
		if !slices.Equal(got[k], recipes) {
			t.Errorf("%v: %v, want %v", k, got[k], recipes)
		}
	}
}

func TestSelfTestHasTwentySeedsOfEachControl(t *testing.T) {
	seeds := map[string]map[uint64]bool{"never-accused": {}, "always-caught": {}, "holder-pause": {}}
	for _, sc := range expand(t, "self-test") {
		if seeds[sc.Group] == nil {
			continue
		}
		seeds[sc.Group][sc.Seed] = true
		want := scenario.Expect{Verdict: scenario.Safe, Promise: scenario.Kept, Liveness: scenario.Live}
		switch sc.Group {
		case "always-caught":
			want = scenario.Expect{Verdict: scenario.Unsafe, Promise: scenario.Broken, Liveness: sc.Expect.Liveness}
		case "holder-pause":
			want.Verdict = scenario.Unsafe
		}
		got := sc.Expect
		if got.Verdict != want.Verdict || got.Promise != want.Promise || got.Liveness != want.Liveness {
			t.Errorf("%s: expects %+v, want %+v", sc.Name, got, want)
		}
	}
	for group, n := range map[string]int{"never-accused": 20, "always-caught": 20, "holder-pause": 1} {
		if len(seeds[group]) != n {
			t.Errorf("%s: %d different seeds, want %d", group, len(seeds[group]), n)
		}
	}
}

// TestSelfTestHasEveryControl: each broken lock must be caught by some block, and
// the correct lock runs in the same block and must keep its guarantee.
func TestSelfTestHasEveryControl(t *testing.T) {
	caught := map[string]bool{}
	kept, groups := map[string]bool{}, map[string]bool{}
	for _, sc := range expand(t, "self-test") {
		switch {
		case sc.Recipe == "reference/mutex":
			kept[sc.Group] = sc.Expect.Promise == scenario.Kept
		case sc.Expect.Promise == scenario.Broken || sc.Expect.Liveness == scenario.Stuck || len(sc.Expect.Thresholds) > 0:
			caught[sc.Recipe] = true
			groups[sc.Group] = true
		}
	}
	for _, id := range catalogue().IDs() {
		if strings.HasPrefix(id, "reference/broken") && !caught[id] {
			t.Errorf("%s need not be caught at anything", id)
		}
	}
	for group := range groups {
		if group != "always-caught" && !kept[group] { // its counterpart is never-accused
			t.Errorf("%s: no right lock beside the wrong ones", group)
		}
	}
}

func TestLoadHelpsWithUnknownNames(t *testing.T) {
	for name, want := range map[string]string{
		"quik":         "did you mean quick?",
		"selftest":     "did you mean self-test?",
		"nothing-like": "choose quick, safety, self-test, properties",
	} {
		_, err := suites.Load(name)
		if !errors.Is(err, scenario.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("Load(%q): %v, want an ErrInvalid with %q", name, err, want)
		}
	}
}

// Suites about every recipe must leave none out.
func TestSuitesOfAllRecipes(t *testing.T) {
	var want []string
	for _, id := range catalogue().IDs() {
		if !strings.HasPrefix(id, "reference/") {
			want = append(want, id)
		}
	}
	slices.Sort(want)
	for _, suite := range []string{"safety", "properties", "cost", "takeover"} {
		var got []string
		for _, sc := range expand(t, suite) {
			if !slices.Contains(got, sc.Recipe) {
				got = append(got, sc.Recipe)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s runs %v, want %v", suite, got, want)
		}
	}
}

// An expected failure proves something only beside a lock that is expected to do
// better under the same load.
func TestKnownFailuresHaveControls(t *testing.T) {
	type load struct{ workload, faults string }
	failing, sound := map[load]string{}, map[load]bool{}
	for _, sc := range expand(t, "known-failures") {
		e := sc.Expect
		l := load{workload: sc.Workload.Kind}
		for _, f := range sc.Faults {
			if f.Kind != "step-kill" && f.Kind != "step-pause" { // which need the very step
				l.faults += f.Kind
			}
		}
		thresholds := slices.ContainsFunc(e.Thresholds, func(s string) bool { return strings.Contains(s, ">") })
		if e.Promise == scenario.Broken || e.Liveness == scenario.Stuck || thresholds {
			failing[l] = sc.Name
		} else {
			sound[l] = true
		}
	}
	for l, name := range failing {
		if !sound[l] {
			t.Errorf("%s has no sound lock beside it under %+v", name, l)
		}
	}
}

// The safety suite leaves out no recipe under the faults that apply to all, and no
// action; every block has a priority and a description.
func TestSafetyLeavesNothingOut(t *testing.T) {
	f, err := suites.Load("safety")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range f.Scenarios {
		if b.Priority == 0 || b.Description == "" {
			t.Errorf("%s: priority %d, described as %q", b.Name, b.Priority, b.Description)
		}
	}
	actions := map[string]map[string]bool{} // the recipes of each
	seeds := map[string]int{}
	for _, sc := range expand(t, "safety") {
		seeds[sc.Group+sc.Recipe]++
		for _, fault := range sc.Faults {
			k, _ := chaos.ParseKind(fault.Kind)
			action := k.About().Name
			if k.OnClient() {
				action = "client " + action
			}
			if actions[action] == nil {
				actions[action] = map[string]bool{}
			}
			actions[action][sc.Recipe] = true
		}
	}
	for what, n := range seeds {
		if n != 3 {
			t.Errorf("%s: %d seeds", what, n)
		}
	}
	all := 0
	for _, id := range catalogue().IDs() {
		if !strings.HasPrefix(id, "reference/") {
			all++
		}
	}
	for _, action := range chaos.Actions() {
		a := action.About()
		name := a.Name
		least := 1
		if slices.Contains(a.Targets, scenario.TargetHolder) {
			name, least = "client "+name, all
		}
		if got := len(actions[name]); got < least {
			t.Errorf("%s: %d recipes meet it, want %d", name, got, least)
		}
	}
}

// A budget is kept, and runs the highest priorities first.
func TestSafetyWithinABudget(t *testing.T) {
	f, err := suites.Load("safety")
	if err != nil {
		t.Fatal(err)
	}
	all := expand(t, "safety")
	for _, budget := range []time.Duration{5 * time.Minute, 20 * time.Minute} {
		sel := f.Within(budget, all, f.Parallel)
		if sel.Estimate > budget || sel.Estimate < budget*9/10 {
			t.Errorf("%v: %v are planned", budget, sel.Estimate)
		}
		recipes := map[string]bool{}
		for _, sc := range sel.Picked {
			recipes[sc.Recipe] = true
		}
		if len(recipes) < 28 {
			t.Errorf("%v: only %d recipes run", budget, len(recipes))
		}
	}
}
